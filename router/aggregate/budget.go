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
	// readPage is how many objects of a region are read at one time.
	readPage = 500
	// defaultBudget and defaultAnswer are bytes after decompression. As objects they take some ten times of that.
	defaultBudget = 256 << 20
	defaultAnswer = 16 << 20
	// reserve is what a request takes of the budget before it is sent, so that what has begun can end.
	reserve = 1 << 20
	// shares is how many callers it takes to use up a Budget.
	shares = 4
)

// Budget bounds the bytes of the answers of regions, after decompression, that several APIs hold at one time. One API, such
// as that of one caller, holds a quarter of it at most. It is safe for concurrent use.
type Budget struct {
	bytes int64
	all   *semaphore.Weighted
}

// NewBudget makes a Budget for the Options of several APIs. Zero bytes are 256 MiB. Less than 4 MiB is an error.
func NewBudget(bytes int64) (*Budget, error) {
	if bytes == 0 {
		bytes = defaultBudget
	}
	if bytes < shares*reserve {
		return nil, fmt.Errorf("aggregate: a budget of %d bytes; want %d at least, or zero for %d", bytes, shares*reserve, defaultBudget)
	}
	return &Budget{bytes: bytes, all: semaphore.NewWeighted(bytes)}, nil
}

// account is what one API may take of a Budget.
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

// limitError says in which way an answer is more than is taken. Its text names no peer.
type limitError struct {
	state State
	text  string
}

func (e *limitError) Error() string { return e.text }

// Is lets errors.Is find region.ErrTooLarge.
func (e *limitError) Is(target error) bool {
	return target == region.ErrTooLarge && e.state == TooLarge
} //nolint:errorlint // it is Is

// hold is what one answer takes of the budget. It is the Meter of the answer, and belongs to one goroutine at a time.
type hold struct {
	account     *account
	limit       int64
	taken, used int64
	err         error
	once        sync.Once
}

// hold waits for a place for an answer to a read, at most as long as a region may take to begin one.
func (a *API) hold(ctx context.Context) (*hold, error) {
	ctx, cancel := context.WithTimeout(ctx, a.opts.Answer)
	defer cancel()
	if err := a.account.acquire(ctx, reserve); err != nil {
		return nil, a.busy()
	}
	return &hold{account: a.account, limit: a.opts.MaxAnswer, taken: reserve}, nil
}

func (a *API) busy() error { return a.account.busy() }

func (a *account) busy() error {
	return &limitError{Busy, fmt.Sprintf("the answers that are read now take %d bytes, or %d of one caller: try again, or list in pages (limit)", a.budget.bytes, a.bytes)}
}

// Took counts n more bytes.
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

// Ended keeps what was taken: the objects of the answer are still held.
func (h *hold) Ended() {}

// settle gives back what was reserved and not used.
func (h *hold) settle() {
	if spare := h.taken - h.used; spare > 0 {
		h.account.release(spare)
		h.taken = h.used
	}
}

// release gives back everything. It is idempotent.
func (h *hold) release() {
	h.once.Do(func() {
		h.account.release(h.taken)
		h.taken = 0
	})
}

// failed returns why the answer was given up, or err.
func (h *hold) failed(err error) error {
	if err != nil && h.err != nil {
		return h.err
	}
	return err
}

// metered returns a context in which the answer is counted by h.
func (h *hold) metered(ctx context.Context) context.Context {
	return region.WithMeter(ctx, func(bool) region.Meter { return h })
}

// eventMeter counts one event of a watch after the other.
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

// page is one answer to a list, and what it takes of the budget until it is released.
type page struct {
	*unstructuredList
	held *hold
	sum  uint64 // of the fingerprints of its objects, if they were asked for
}

// tooLarge says whether fewer objects may fit.
func tooLarge(err error) bool {
	limit, ok := errors.AsType[*limitError](err)
	return ok && limit.state == TooLarge
}
