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

// Memory is a Log in memory: no files, no goroutines, usable inside a testing/synctest bubble. It remembers ended entries
// for ever and accepts entries of any length. It is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	entries map[string]wal.Entry
	last    uint64
	fault   *fault
	closed  error
}

// fault is what the next writing call meets.
type fault struct {
	applied bool
	err     error
}

var _ wal.Log = (*Memory)(nil)

// NewMemory returns an empty log.
func NewMemory() *Memory { return &Memory{entries: map[string]wal.Entry{}} }

// FailNext makes the next writing call return a [*wal.InDoubtError] of err, with its change applied or not, and all
// later calls wal.ErrClosed.
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

// Reopen closes m and returns a log with what m held, as the next process finds it.
func (m *Memory) Reopen() *Memory {
	_ = m.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Memory{entries: maps.Clone(m.entries), last: m.last}
}

// Begin implements [wal.Log].
func (m *Memory) Begin(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	return m.write(ctx, e.ID, func() (wal.Entry, error) {
		if e.ID == "" {
			return wal.Entry{}, &wal.FieldError{Field: "ID", Reason: "is empty, must be unique and ordered by time"}
		}
		if stored, ok := m.entries[e.ID]; ok {
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
		stored, ok := m.entries[e.ID]
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
		stored, ok := m.entries[e.ID]
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
			e, err := copied(m.entries[id]), m.refusal(ctx)
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

// write runs change, stores the entry that it returns without an error, and meets the fault that was set.
func (m *Memory) write(ctx context.Context, id string, change func() (wal.Entry, error)) (wal.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refusal(ctx); err != nil {
		return wal.Entry{}, err
	}
	e, err := change()
	if f := m.fault; f != nil {
		if f.applied && err == nil && e.ID != "" {
			m.entries[e.ID] = copied(e)
		}
		m.fault, m.closed = nil, wal.ErrClosed
		return wal.Entry{}, &wal.InDoubtError{Path: "memory", ID: id, Err: f.err}
	}
	if err == nil && e.ID != "" {
		m.entries[e.ID] = copied(e)
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
	return slices.Sorted(maps.Keys(m.entries))
}

func (m *Memory) byKey(key string) (wal.Entry, bool) {
	for _, e := range m.entries {
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
