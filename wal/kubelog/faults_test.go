// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/kubelog"
)

var operations = schema.GroupResource{Group: "fanout.atoll.dev", Resource: "operations"}

// misfortunes are the faults of one request. With each of them, the call returns the same result as without a
// fault.
var misfortunes = []regiontest.Action{
	regiontest.DropRequest(),
	regiontest.DropReply(),
	regiontest.ApplyLate(60 * time.Millisecond),
	regiontest.Refuse(503),
	regiontest.Refuse(429),
}

// TestLostAnswers injects each fault into each request of Begin, Advance, End and Find, one at a time. Each call
// returns the same result as without the fault.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for _, action := range misfortunes {
		t.Run(action.String(), func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			l := open(t, s, kubelog.Options{})
			for at := 0; ; at++ {
				before := len(s.Requests())
				s.Inject(regiontest.Fault{Resource: operations, Skip: at, Do: action})
				id, key := fmt.Sprintf("op-%02d", at), fmt.Sprintf("key-%d", at)
				e, err := l.Begin(t.Context(), wal.Entry{ID: id, Key: key, State: "begun", Data: []byte("x")})
				require.NoError(t, err)
				e.State = "going"
				e, err = l.Advance(t.Context(), e)
				require.NoError(t, err)
				e, err = l.Advance(t.Context(), e)
				require.NoError(t, err)
				require.NoError(t, l.End(t.Context(), e, []byte("done")))
				got, err := l.Find(t.Context(), key)
				require.NoError(t, err)
				require.Equal(t, id, got.ID)
				require.Equal(t, "done", string(got.Outcome))
				for e, err := range l.Open(t.Context()) {
					require.NoError(t, err)
					t.Fatalf("%s is open", e.ID)
				}
				if len(s.Requests())-before < at {
					require.Greater(t, at, 6)
					return
				}
			}
		})
	}
}

// TestDoubt checks that the outcome of a write is in doubt while the API server does not answer, and that the log
// can be read again later.
func TestDoubt(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	// The first log times out.
	l, answered := open(t, s, kubelog.Options{Timeout: 2 * time.Second}), open(t, s, kubelog.Options{})
	s.Inject(regiontest.Fault{Verb: "create", Do: regiontest.CrashAfter(func() { s.Partition(true) })})
	_, err := l.Begin(t.Context(), wal.Entry{ID: "a"})
	doubt, ok := errors.AsType[*kubelog.InDoubtError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "a", doubt.ID)
	require.ErrorIs(t, err, wal.ErrInDoubt)
	require.NotErrorIs(t, err, wal.ErrClosed)
	s.Partition(false)
	n := 0
	for e, err := range answered.Open(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, "a", e.ID)
		n++
	}
	require.Equal(t, 1, n)

	s.Partition(true)
	_, err = l.Begin(t.Context(), wal.Entry{ID: "b"})
	require.Error(t, err)
	_, err = l.Find(t.Context(), "operation/a")
	require.Error(t, err)
	require.NotErrorIs(t, err, wal.ErrNotFound, "an unreadable entry is not reported as absent")
	s.Partition(false)
}

// TestBeginThatDied checks the record of a program that died between the writes of a begin: it is not an entry, and
// blocks neither its ID nor its key.
func TestBeginThatDied(t *testing.T) {
	t.Parallel()
	for at := range 3 {
		s, p := newServer(t), &program{}
		died := openBy(t, s, p, kubelog.Options{})
		s.Inject(regiontest.Fault{Resource: operations, Skip: at, Do: regiontest.Crash(func() { p.dead.Store(true) })})
		_, err := died.Begin(t.Context(), wal.Entry{ID: "a", Key: "k", Data: []byte("a")})
		require.Error(t, err)
		require.True(t, p.dead.Load())
		l := open(t, s, kubelog.Options{Grace: 20 * time.Millisecond})
		for e, err := range l.Open(t.Context()) {
			t.Fatalf("%d: it was never begun: %v %v", at, e, err)
		}
		_, err = l.Find(t.Context(), "k")
		require.ErrorIs(t, err, wal.ErrNotFound)
		e, err := l.Begin(t.Context(), wal.Entry{ID: "b", Key: "k", Data: []byte("b")})
		require.NoError(t, err)
		got, err := l.Find(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, e, got)
		_, err = l.Begin(t.Context(), wal.Entry{ID: "a", Key: "other"})
		require.NoError(t, err)
	}
}

// TestHistoryIsForgotten checks that End prunes entries after the retention time and not before, that it does not
// prune an open entry, and that the key of a pruned entry can be used again.
func TestHistoryIsForgotten(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	l := open(t, s, kubelog.Options{Retention: time.Millisecond})
	kept, err := l.Begin(t.Context(), wal.Entry{ID: "kept", Key: "kept"})
	require.NoError(t, err)
	patient := open(t, s, kubelog.Options{Retention: time.Hour})
	for n := range 40 {
		e, err := patient.Begin(t.Context(), wal.Entry{ID: fmt.Sprintf("op-%d", n), Key: fmt.Sprintf("key-%d", n)})
		require.NoError(t, err)
		require.NoError(t, patient.End(t.Context(), e, nil))
	}
	for n := range 40 {
		require.NoError(t, patient.End(t.Context(), wal.Entry{ID: "unknown"}, nil))
		_, err := patient.Find(t.Context(), fmt.Sprintf("key-%d", n))
		require.NoError(t, err, "the retention time is not over")
	}
	forgotten := func() bool {
		require.NoError(t, l.End(t.Context(), wal.Entry{ID: "unknown"}, nil))
		for n := range 40 {
			if _, err := l.Find(t.Context(), fmt.Sprintf("key-%d", n)); !errors.Is(err, wal.ErrNotFound) {
				return false
			}
		}
		return true
	}
	for !forgotten() {
		require.NoError(t, t.Context().Err())
	}
	got, err := l.Find(t.Context(), "kept")
	require.NoError(t, err)
	require.Equal(t, kept, got)
	again, err := l.Begin(t.Context(), wal.Entry{ID: "again", Key: "key-1"})
	require.NoError(t, err)
	require.Equal(t, "key-1", again.Key)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	l := open(t, s, kubelog.Options{Timeout: time.Minute})
	e, err := l.Begin(t.Context(), wal.Entry{ID: "a", Key: "k", Data: make([]byte, wal.MaxData)})
	require.NoError(t, err)
	require.NoError(t, l.End(t.Context(), e, make([]byte, wal.MaxOutcome)))
	e, err = l.Find(t.Context(), "k")
	require.NoError(t, err)
	require.Len(t, e.Data, wal.MaxData)
	require.Len(t, e.Outcome, wal.MaxOutcome)
	for _, e := range []wal.Entry{{ID: "A"}, {ID: "a b"}, {ID: "b", Data: make([]byte, wal.MaxData+1)}} {
		_, err := l.Begin(t.Context(), e)
		_, ok := errors.AsType[*wal.FieldError](err)
		require.True(t, ok, "%v", err)
	}
	_, err = kubelog.New(nil, kubelog.Options{})
	require.ErrorContains(t, err, "api is nil")
}
