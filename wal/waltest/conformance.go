// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package waltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
)

// Opener opens another handle of one log, as another process does. If the handle must be closed, the Opener registers
// its Close with t.Cleanup.
type Opener func(t *testing.T) (wal.Log, error)

// Run checks the rules of [wal.Log] that can be observed without a crash, a fault or damage. Each call of store
// creates an empty log and returns the log's Opener.
func Run(t *testing.T, store func(t *testing.T) Opener) {
	t.Helper()
	runOne(t, store)
	runSeveral(t, store)
}

// runOne checks the rules of a log that one coordinator uses.
func runOne(t *testing.T, store func(t *testing.T) Opener) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*testing.T, wal.Log)
	}{
		{"begin returns what it stored", beginStores},
		{"begin refuses a known ID", beginKnownID},
		{"begin refuses a known key", beginKnownKey},
		{"begin refuses a key that has ended", beginEndedKey},
		{"entries without a key are independent", beginWithoutKey},
		{"begin checks its entry", beginInvalid},
		{"advance replaces owner, state and data", advanceReplaces},
		{"every advance has a version of its own", advanceVersions},
		{"advance refuses a stale version", advanceStale},
		{"advance refuses what ended or never was", advanceEnded},
		{"one of many advances wins", advanceRace},
		{"one of many begins of a key wins", beginRace},
		{"operations do not disturb each other", independent},
		{"end keeps the outcome", endKeeps},
		{"end is idempotent", endTwice},
		{"one of many ends gives the outcome", endRace},
		{"what ended is found by its key however much follows", endedHistory},
		{"end refuses a stale version", endStale},
		{"end of the unknown is nothing", endUnknown},
		{"open is in order of ID", openOrder},
		{"open can be left early and run again", openTwice},
		{"find knows only keys", findKeys},
		{"the log shares no memory", noSharing},
		{"a context that has ended changes nothing", endedContext},
		{"what is begun decides nothing", decidesNothing},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			log, err := store(t)(t)
			require.NoError(t, err)
			c.test(t, log)
		})
	}
}

// sample returns an entry with all fields that a caller sets.
func sample(n int) wal.Entry {
	return wal.Entry{
		ID: fmt.Sprintf("op-%04d", n), Kind: "test", Key: fmt.Sprintf("key-%d", n), Owner: "me", State: "begun",
		Data: []byte{byte(n), 0, 255}, Began: time.Date(2026, 1, 2, 3, 4, 5, n, time.UTC),
	}
}

func begin(t *testing.T, l wal.Log, e wal.Entry) wal.Entry {
	t.Helper()
	stored, err := l.Begin(t.Context(), e)
	require.NoError(t, err)
	return stored
}

func same(t *testing.T, want, got wal.Entry, ignore ...string) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(wal.Entry{}, append(ignore, "Version")...)); d != "" {
		t.Fatalf("entry differs (-want +got):\n%s", d)
	}
}

// list returns the open entries and fails on any error.
func list(t *testing.T, l wal.Log) []wal.Entry {
	t.Helper()
	var all []wal.Entry
	for e, err := range l.Open(t.Context()) {
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

func beginStores(t *testing.T, l wal.Log) {
	require.Empty(t, list(t, l))
	e := begin(t, l, sample(1))
	require.NotEmpty(t, e.Version)
	same(t, sample(1), e)
	require.Equal(t, []wal.Entry{e}, list(t, l))
	found, err := l.Find(t.Context(), "key-1")
	require.NoError(t, err)
	require.Equal(t, e, found)

	without := sample(2)
	without.Began = time.Time{}
	require.False(t, begin(t, l, without).Began.IsZero())
}

func beginKnownID(t *testing.T, l wal.Log) {
	e := begin(t, l, sample(1))
	again := sample(2)
	again.ID = e.ID
	stored, err := l.Begin(t.Context(), again)
	require.ErrorIs(t, err, wal.ErrExists)
	require.Equal(t, e, stored)
	_, err = l.Find(t.Context(), again.Key)
	require.ErrorIs(t, err, wal.ErrNotFound)
}

func beginKnownKey(t *testing.T, l wal.Log) {
	e := begin(t, l, sample(1))
	again := sample(2)
	again.Key = e.Key
	stored, err := l.Begin(t.Context(), again)
	require.ErrorIs(t, err, wal.ErrExists)
	require.Equal(t, e, stored)
	require.Len(t, list(t, l), 1)
}

func beginEndedKey(t *testing.T, l wal.Log) {
	e := begin(t, l, sample(1))
	require.NoError(t, l.End(t.Context(), e, []byte("done")))
	for _, again := range []wal.Entry{{ID: e.ID}, {ID: "op-0002", Key: e.Key}} {
		stored, err := l.Begin(t.Context(), again)
		require.ErrorIs(t, err, wal.ErrExists)
		require.False(t, stored.Ended.IsZero())
		require.Equal(t, "done", string(stored.Outcome))
	}
	require.Empty(t, list(t, l))
}

func beginWithoutKey(t *testing.T, l wal.Log) {
	for n := range 3 {
		e := sample(n)
		e.Key = ""
		begin(t, l, e)
	}
	require.Len(t, list(t, l), 3)
}

func beginInvalid(t *testing.T, l wal.Log) {
	_, err := l.Begin(t.Context(), wal.Entry{Key: "k"})
	field, ok := errors.AsType[*wal.FieldError](err)
	require.True(t, ok, "error is %v", err)
	require.Equal(t, "ID", field.Field)
	require.Empty(t, list(t, l))
}

func advanceReplaces(t *testing.T, l wal.Log) {
	e := begin(t, l, sample(1))
	next := e
	next.State, next.Owner, next.Data = "going", "you", []byte("new")
	next.Kind, next.Key, next.Began = "not", "these", time.Time{}
	got, err := l.Advance(t.Context(), next)
	require.NoError(t, err)
	require.NotEqual(t, e.Version, got.Version)
	want := e
	want.State, want.Owner, want.Data = "going", "you", []byte("new")
	same(t, want, got)
	require.Equal(t, []wal.Entry{got}, list(t, l))
	got, err = l.Advance(t.Context(), got)
	require.NoError(t, err)
	require.NoError(t, l.End(t.Context(), got, nil))
}

// An Advance that changes nothing counts as a change: only the last writer has the valid version.
func advanceVersions(t *testing.T, l wal.Log) {
	e := begin(t, l, sample(1))
	versions := map[string]bool{e.Version: true}
	for _, state := range []string{"begun", "begun", "going", "begun", "begun"} {
		e.State = state
		next, err := l.Advance(t.Context(), e)
		require.NoError(t, err)
		require.False(t, versions[next.Version], "version %q was there before", next.Version)
		versions[next.Version] = true
		e = next
	}
	require.Equal(t, []wal.Entry{e}, list(t, l))
}

func advanceStale(t *testing.T, l wal.Log) {
	old := begin(t, l, sample(1))
	now, err := l.Advance(t.Context(), old)
	require.NoError(t, err)
	old.State = "lost"
	stored, err := l.Advance(t.Context(), old)
	require.ErrorIs(t, err, wal.ErrStale)
	require.Equal(t, now, stored)
	require.Equal(t, []wal.Entry{now}, list(t, l))
}

func advanceEnded(t *testing.T, l wal.Log) {
	_, err := l.Advance(t.Context(), sample(1))
	require.ErrorIs(t, err, wal.ErrNotFound)
	e := begin(t, l, sample(1))
	require.NoError(t, l.End(t.Context(), e, nil))
	stored, err := l.Advance(t.Context(), e)
	require.ErrorIs(t, err, wal.ErrStale)
	require.False(t, stored.Ended.IsZero())
	require.Empty(t, list(t, l))
}

// race runs fn in n goroutines at once and returns how many calls succeeded. All other calls must fail with want.
// If want is nil, no call may fail.
func race(t *testing.T, n int, want error, fn func(n int) error) (won int) {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = fn(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		require.ErrorIs(t, err, want)
	}
	return won
}

func advanceRace(t *testing.T, l wal.Log) {
	e := begin(t, l, sample(1))
	require.Equal(t, 1, race(t, 16, wal.ErrStale, func(n int) error {
		mine := e
		mine.State = fmt.Sprint(n)
		_, err := l.Advance(t.Context(), mine)
		return err
	}))
}

func beginRace(t *testing.T, l wal.Log) {
	require.Equal(t, 1, race(t, 16, wal.ErrExists, func(n int) error {
		mine := sample(n)
		mine.Key = "one"
		_, err := l.Begin(t.Context(), mine)
		return err
	}))
	require.Len(t, list(t, l), 1)
}

func endKeeps(t *testing.T, l wal.Log) {
	e := begin(t, l, sample(1))
	require.NoError(t, l.End(t.Context(), e, []byte{0, 1}))
	require.Empty(t, list(t, l))
	got, err := l.Find(t.Context(), e.Key)
	require.NoError(t, err)
	require.False(t, got.Ended.IsZero())
	require.Equal(t, []byte{0, 1}, got.Outcome)
	same(t, e, got, "Outcome", "Ended")
}

func endTwice(t *testing.T, l wal.Log) {
	e := begin(t, l, sample(1))
	require.NoError(t, l.End(t.Context(), e, []byte("first")))
	require.NoError(t, l.End(t.Context(), e, []byte("second")))
	got, err := l.Find(t.Context(), e.Key)
	require.NoError(t, err)
	require.Equal(t, "first", string(got.Outcome))
}

func endRace(t *testing.T, l wal.Log) {
	e := begin(t, l, sample(1))
	const n = 8
	require.Equal(t, n, race(t, n, nil, func(n int) error { return l.End(t.Context(), e, []byte{byte(n)}) }))
	first, err := l.Find(t.Context(), e.Key)
	require.NoError(t, err)
	require.Len(t, first.Outcome, 1)
	require.Less(t, first.Outcome[0], byte(n))
	require.NoError(t, l.End(t.Context(), e, []byte("late")))
	again, err := l.Find(t.Context(), e.Key)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Empty(t, list(t, l))
}

// Each of many ended entries is found by its key. The retention time is longer than any test, so the log prunes none
// of them during this test.
func endedHistory(t *testing.T, l wal.Log) {
	const n = 60
	for i := range n {
		require.NoError(t, l.End(t.Context(), begin(t, l, sample(i)), []byte{byte(i)}))
	}
	require.Empty(t, list(t, l))
	for i := range n {
		want := sample(i)
		found, err := l.Find(t.Context(), want.Key)
		require.NoError(t, err)
		want.Outcome = []byte{byte(i)}
		same(t, want, found, "Ended")
		again := sample(n + i)
		again.Key = want.Key
		stored, err := l.Begin(t.Context(), again)
		require.ErrorIs(t, err, wal.ErrExists)
		require.Equal(t, found, stored)
		stored, err = l.Advance(t.Context(), found)
		require.ErrorIs(t, err, wal.ErrStale)
		require.Equal(t, found, stored)
	}
}

func independent(t *testing.T, l wal.Log) {
	const n = 16
	require.Equal(t, n, race(t, n, nil, func(n int) error {
		e, err := l.Begin(t.Context(), sample(n))
		for i := 0; i < 3 && err == nil; i++ {
			e.Data = []byte{byte(n), byte(i)}
			e, err = l.Advance(t.Context(), e)
		}
		if err == nil && n%2 == 0 {
			err = l.End(t.Context(), e, e.Data)
		}
		return err
	}))
	require.Len(t, list(t, l), n/2)
	for i := range n {
		e, err := l.Find(t.Context(), sample(i).Key)
		require.NoError(t, err)
		require.Equal(t, []byte{byte(i), 2}, e.Data)
		require.Equal(t, i%2 == 0, !e.Ended.IsZero())
	}
}

func endStale(t *testing.T, l wal.Log) {
	old := begin(t, l, sample(1))
	now, err := l.Advance(t.Context(), old)
	require.NoError(t, err)
	require.ErrorIs(t, l.End(t.Context(), old, nil), wal.ErrStale)
	require.Equal(t, []wal.Entry{now}, list(t, l))
}

func endUnknown(t *testing.T, l wal.Log) {
	require.NoError(t, l.End(t.Context(), sample(1), []byte("x")))
	_, err := l.Find(t.Context(), sample(1).Key)
	require.ErrorIs(t, err, wal.ErrNotFound)
}

func openOrder(t *testing.T, l wal.Log) {
	const n = 150 // more entries than an implementation reads at once
	var want []string
	for i := range n {
		e := begin(t, l, sample((i*37)%n))
		if i%5 == 0 {
			require.NoError(t, l.End(t.Context(), e, nil))
			continue
		}
		want = append(want, e.ID)
	}
	slices.Sort(want)
	var got []string
	for _, e := range list(t, l) {
		got = append(got, e.ID)
	}
	require.Equal(t, want, got)
}

func openTwice(t *testing.T, l wal.Log) {
	for n := range 3 {
		begin(t, l, sample(n))
	}
	seq := l.Open(t.Context())
	for e, err := range seq {
		require.NoError(t, err)
		// The log can be used while the caller works on an entry.
		require.NoError(t, l.End(t.Context(), e, nil))
		break
	}
	n := 0
	for _, err := range seq {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 2, n)
}

func findKeys(t *testing.T, l wal.Log) {
	e := sample(1)
	e.Key = ""
	begin(t, l, e)
	for _, key := range []string{"", "op-0001", "key-1"} {
		_, err := l.Find(t.Context(), key)
		require.ErrorIs(t, err, wal.ErrNotFound, "key %q", key)
	}
}

func noSharing(t *testing.T, l wal.Log) {
	e := sample(1)
	stored := begin(t, l, e)
	e.Data[0], stored.Data[1] = 99, 99
	found, err := l.Find(t.Context(), e.Key)
	require.NoError(t, err)
	same(t, sample(1), found)
	found.Data[2] = 99
	same(t, sample(1), list(t, l)[0])
}

func endedContext(t *testing.T, l wal.Log) {
	e := begin(t, l, sample(1))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.Canceled)
	_, err := l.Begin(ctx, sample(2))
	require.ErrorIs(t, err, context.Canceled)
	_, err = l.Advance(ctx, e)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, l.End(ctx, e, nil), context.Canceled)
	_, err = l.Find(ctx, e.Key)
	require.ErrorIs(t, err, context.Canceled)
	for _, err := range l.Open(ctx) {
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Equal(t, []wal.Entry{e}, list(t, l))
}

// For an entry of Begin and for an unknown ID, Decision returns ErrNotFound, or ErrNoDecisions if the log has never
// held records with a decision.
func decidesNothing(t *testing.T, l wal.Log) {
	e := begin(t, l, sample(1))
	for _, id := range []string{e.ID, "op-0002"} {
		_, err := l.Decision(t.Context(), id)
		if !errors.Is(err, wal.ErrNoDecisions) {
			require.ErrorIs(t, err, wal.ErrNotFound)
		}
	}
}
