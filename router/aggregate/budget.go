// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/atoll-dev/atoll/region"
)

const (
	// readPage is the number of objects that one request asks a region for, until the size of the objects is known.
	readPage = 500
	// largePage is the number of bytes that a later request of a list asks for, if the budget has them free. Each
	// request costs both servers about as much processor time as 200 objects of 2 KB.
	largePage = 4 << 20
	// defaultBudget and defaultAnswer are in bytes after decompression. Decoded objects take about ten times as
	// much memory.
	defaultBudget = 256 << 20
	defaultAnswer = 16 << 20
	// reserve is the number of bytes taken from the budget before a request is sent, so that the request can
	// complete.
	reserve = 1 << 20
	// shares is how many APIs together can use up a Budget.
	shares = 4
)

// Budget limits the bytes, after decompression, of the answers that several APIs hold at one time. Each API, such as
// the API of one caller, holds at most a quarter of these bytes. A Budget is safe for concurrent use.
type Budget struct {
	bytes   int64
	all     *semaphore.Weighted
	answers sync.Pool // of *bytes.Buffer
}

// NewBudget returns a Budget for several APIs, which share it in their Options. Zero bytes mean 256 MiB. Less than
// 4 MiB is an error.
func NewBudget(bytes int64) (*Budget, error) {
	if bytes == 0 {
		bytes = defaultBudget
	}
	if bytes < shares*reserve {
		return nil, fmt.Errorf("aggregate: a budget of %d bytes; want %d at least, or zero for %d", bytes, shares*reserve, defaultBudget)
	}
	return &Budget{bytes: bytes, all: semaphore.NewWeighted(bytes)}, nil
}

// account is the part of a Budget that one API may take.
type account struct {
	budget *Budget
	bytes  int64
	own    *semaphore.Weighted
}

func (b *Budget) account(bytes int64) *account {
	return &account{budget: b, bytes: bytes, own: semaphore.NewWeighted(bytes)}
}

func (a *account) acquire(ctx context.Context, n int64) error {
	if err := a.own.Acquire(ctx, n); err != nil {
		return err
	}
	if err := a.budget.all.Acquire(ctx, n); err != nil {
		a.own.Release(n)
		return err
	}
	return nil
}

func (a *account) tryAcquire(n int64) bool {
	if !a.own.TryAcquire(n) {
		return false
	}
	if !a.budget.all.TryAcquire(n) {
		a.own.Release(n)
		return false
	}
	return true
}

func (a *account) release(n int64) {
	a.budget.all.Release(n)
	a.own.Release(n)
}

// limitError means that an answer exceeds Options.MaxAnswer, or does not fit into the Budget. Its text names no peer.
type limitError struct {
	state State
	text  string
}

func (e *limitError) Error() string { return e.text }

// Is reports whether target is region.ErrTooLarge and the limit is that of one answer. errors.Is calls it.
func (e *limitError) Is(target error) bool {
	return target == region.ErrTooLarge && e.state == TooLarge
} //nolint:errorlint // errors.Is calls this method with a single error

// hold is the part of the budget that one answer takes. It is the answer's Meter. Only one goroutine at a time may
// use it.
type hold struct {
	account     *account
	limit       int64
	taken, used int64
	err         error
	once        sync.Once
}

// hold reserves budget for one answer. It waits for free budget for at most Options.Answer.
func (a *API) hold(ctx context.Context) (*hold, error) {
	ctx, cancel := context.WithTimeout(ctx, a.opts.Answer)
	defer cancel()
	if err := a.account.acquire(ctx, reserve); err != nil {
		return nil, a.busy()
	}
	return &hold{account: a.account, limit: a.opts.MaxAnswer, taken: reserve}, nil
}

// tryHold reserves budget for one answer if it is free now, and returns nil otherwise.
func (a *API) tryHold() *hold {
	if !a.account.tryAcquire(reserve) {
		return nil
	}
	return &hold{account: a.account, limit: a.opts.MaxAnswer, taken: reserve}
}

func (a *API) busy() error { return a.account.busy() }

func (a *account) busy() error {
	return &limitError{Busy, fmt.Sprintf("the answers that are read now take %d bytes, or %d of one caller: try again, or list in pages (limit)", a.budget.bytes, a.bytes)}
}

// Took counts n more bytes, and returns an error if they exceed a limit.
func (h *hold) Took(n int) error {
	size := int64(n)
	switch more := h.used + size - h.taken; {
	case h.used+size > h.limit:
		h.err = &limitError{TooLarge, fmt.Sprintf("an answer has more than %d bytes: raise Options.MaxAnswer if it is to be trusted", h.limit)}
	case more > 0 && !h.account.tryAcquire(more):
		h.err = h.account.busy()
	default:
		h.taken, h.used = max(h.taken, h.used+size), h.used+size
	}
	return h.err
}

// Ended does nothing at the end of an answer: the objects of the answer stay in memory and still count.
func (h *hold) Ended() {}

// reserve reserves bytes in addition to those that it has, up to n. It reports whether they are free.
func (h *hold) reserve(n int64) bool {
	if more := n - h.taken; more > 0 {
		if !h.account.tryAcquire(more) {
			return false
		}
		h.taken = n
	}
	return true
}

// releaseUnused releases the bytes that were reserved and not used.
func (h *hold) releaseUnused() {
	if spare := h.taken - h.used; spare > 0 {
		h.account.release(spare)
		h.taken = h.used
	}
}

// release returns all bytes of the hold to the budget. It is idempotent.
func (h *hold) release() {
	h.once.Do(func() {
		h.account.release(h.taken)
		h.taken = 0
	})
}

// failed returns the limitError that ended the answer, if a limit did, and err otherwise.
func (h *hold) failed(err error) error {
	if err != nil && h.err != nil {
		return h.err
	}
	return err
}

// metered returns a context in which h counts the answer.
func (h *hold) metered(ctx context.Context) context.Context {
	return region.WithMeter(ctx, func(bool) region.Meter { return h })
}

// eventMeter counts the bytes of the events of a watch against the budget, one event at a time.
type eventMeter struct {
	api *API
	now *hold
}

func (a *API) eventMeter(bool) region.Meter {
	return &eventMeter{api: a, now: &hold{account: a.account, limit: a.opts.MaxAnswer}}
}

func (m *eventMeter) Took(n int) error { return m.now.Took(n) }

func (m *eventMeter) Ended() {
	m.now.release()
	m.now = &hold{account: m.api.account, limit: m.api.opts.MaxAnswer}
}

// tooLarge reports whether err means that an answer was too large, so that a request for fewer objects may succeed.
func tooLarge(err error) bool {
	limit, ok := errors.AsType[*limitError](err)
	return ok && limit.state == TooLarge
}
