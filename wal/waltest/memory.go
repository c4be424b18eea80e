// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package waltest

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/atoll-dev/atoll/wal"
)

// Memory is a handle of a Log in memory. It uses no files and no goroutines, so a program can use it in a
// testing/synctest bubble. The log keeps ended entries for ever and accepts entries of any length. Memory is safe for
// concurrent use.
type Memory struct {
	*entries
	fault  *fault
	closed error
}

// entries is the content of one log in memory, which all handles share. Its mutex also guards the handles.
type entries struct {
	mu     sync.Mutex
	byID   map[string]wal.Entry
	last   uint64
	shared bool
	holder *Memory // for an exclusive log: the handle that has it open
}

// fault is the failure that FailNext requests for the next writing call.
type fault struct {
	applied bool
	err     error
}

var _ wal.Log = (*Memory)(nil)

// NewMemory returns an empty log that is exclusive to one coordinator, as a file is.
func NewMemory() *Memory { return newMemory(false) }

// NewSharedMemory returns an empty log that several coordinators may share, each with its own handle: see Attach.
func NewSharedMemory() *Memory { return newMemory(true) }

func newMemory(shared bool) *Memory {
	m := &Memory{entries: &entries{byID: map[string]wal.Entry{}, shared: shared}}
	m.holder = m
	return m
}

// Attach opens another handle of the log of m, as another process does. For an exclusive log it returns a
// [*wal.LockedError] until the handle that has the log open is closed.
func (m *Memory) Attach() (*Memory, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.shared && m.holder.closed == nil {
		return nil, &wal.LockedError{Path: "memory"}
	}
	m.holder = &Memory{entries: m.entries}
	return m.holder, nil
}

// Shared implements [wal.Log].
func (m *Memory) Shared() bool { return m.shared }

// Decision implements [wal.Log]. It returns ErrNoDecisions: a Memory never held records with a decision.
func (m *Memory) Decision(context.Context, string) (wal.Decision, error) {
	return wal.Decision{}, wal.ErrNoDecisions
}

// FailNext makes the next writing call return a [*wal.InDoubtError] that wraps err. applied decides whether the
// change of this call takes effect. All later calls return wal.ErrClosed.
func (m *Memory) FailNext(applied bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = &fault{applied, err}
}

// Close makes all later calls return wal.ErrClosed, as the end of a process does. It is idempotent.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = cmp.Or(m.closed, wal.ErrClosed)
	return nil
}

// Reopen closes m and returns a new handle of its log, as the next process would get by opening the log.
func (m *Memory) Reopen() *Memory {
	_ = m.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holder = &Memory{entries: m.entries}
	return m.holder
}

// Begin implements [wal.Log].
func (m *Memory) Begin(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	return m.write(ctx, e.ID, func() (wal.Entry, error) {
		if e.ID == "" {
			return wal.Entry{}, &wal.FieldError{Field: "ID", Reason: "is empty, must be unique and ordered by time"}
		}
		if stored, ok := m.byID[e.ID]; ok {
			return stored, wal.ErrExists
		}
		if stored, ok := m.byKey(e.Key); ok {
			return stored, wal.ErrExists
		}
		if e.Began.IsZero() {
			e.Began = time.Now()
		}
		e.Began, e.Ended, e.Outcome = e.Began.UTC().Round(0), time.Time{}, nil
		e.Version = m.version()
		return e, nil
	})
}

// Advance implements [wal.Log].
func (m *Memory) Advance(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	return m.write(ctx, e.ID, func() (wal.Entry, error) {
		stored, ok := m.byID[e.ID]
		if !ok {
			return wal.Entry{}, wal.ErrNotFound
		}
		if !stored.Ended.IsZero() || stored.Version != e.Version {
			return stored, wal.ErrStale
		}
		stored.Owner, stored.State, stored.Data, stored.Version = e.Owner, e.State, e.Data, m.version()
		return stored, nil
	})
}

// End implements [wal.Log].
func (m *Memory) End(ctx context.Context, e wal.Entry, outcome []byte) error {
	_, err := m.write(ctx, e.ID, func() (wal.Entry, error) {
		stored, ok := m.byID[e.ID]
		if !ok || !stored.Ended.IsZero() {
			return stored, nil
		}
		if stored.Version != e.Version {
			return stored, wal.ErrStale
		}
		stored.Outcome, stored.Ended = outcome, time.Now().UTC().Round(0)
		return stored, nil
	})
	return err
}

// Open implements [wal.Log].
func (m *Memory) Open(ctx context.Context) iter.Seq2[wal.Entry, error] {
	return func(yield func(wal.Entry, error) bool) {
		for _, id := range m.ids() {
			m.mu.Lock()
			e, err := copied(m.byID[id]), m.refusal(ctx)
			m.mu.Unlock()
			if err != nil {
				yield(wal.Entry{}, err)
				return
			}
			if e.Ended.IsZero() && !yield(e, nil) {
				return
			}
		}
		m.mu.Lock()
		err := m.refusal(ctx)
		m.mu.Unlock()
		if err != nil {
			yield(wal.Entry{}, err)
		}
	}
}

// Find implements [wal.Log].
func (m *Memory) Find(ctx context.Context, key string) (wal.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refusal(ctx); err != nil {
		return wal.Entry{}, err
	}
	if e, ok := m.byKey(key); ok {
		return copied(e), nil
	}
	return wal.Entry{}, wal.ErrNotFound
}

// write runs change. If change returns no error, write stores the entry that change returns. If FailNext has
// requested a fault, write instead stores the entry only if the fault has applied set, closes m, and returns an
// *InDoubtError.
func (m *Memory) write(ctx context.Context, id string, change func() (wal.Entry, error)) (wal.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refusal(ctx); err != nil {
		return wal.Entry{}, err
	}
	e, err := change()
	if f := m.fault; f != nil {
		if f.applied && err == nil && e.ID != "" {
			m.byID[e.ID] = copied(e)
		}
		m.fault, m.closed = nil, wal.ErrClosed
		return wal.Entry{}, &wal.InDoubtError{Path: "memory", ID: id, Err: f.err}
	}
	if err == nil && e.ID != "" {
		m.byID[e.ID] = copied(e)
	}
	return copied(e), err
}

func (m *Memory) refusal(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return m.closed
}

func (m *Memory) ids() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.byID))
}

func (m *Memory) byKey(key string) (wal.Entry, bool) {
	for _, e := range m.byID {
		if key != "" && e.Key == key {
			return e, true
		}
	}
	return wal.Entry{}, false
}

func (m *Memory) version() string {
	m.last++
	return strconv.FormatUint(m.last, 10)
}

func copied(e wal.Entry) wal.Entry {
	e.Data, e.Outcome = bytes.Clone(e.Data), bytes.Clone(e.Outcome)
	return e
}
