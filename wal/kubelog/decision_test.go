// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/recordtest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/kubelog"
)

func records(t *testing.T, s *regiontest.Server) recordtest.Records {
	t.Helper()
	api, err := region.APIFor(s.Config())
	require.NoError(t, err)
	return recordtest.In(api)
}

// TestDecisionIsRetried checks that one fault does not fail the read of a decision.
func TestDecisionIsRetried(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	l := open(t, s, kubelog.Options{})
	_, err := records(t, s).Propose(t.Context(), wal.Entry{ID: "a", Owner: "them/1"})
	require.NoError(t, err)
	for _, action := range misfortunes {
		s.Inject(regiontest.Fault{Resource: operations, Do: action})
		d, err := l.Decision(t.Context(), "a")
		require.NoError(t, err, action)
		require.Equal(t, "a", d.ID)
	}
}

// TestRecordsOfTheFirstRelease checks that records of the first release can be read, taken over, withdrawn and
// ended. After a takeover the former owner cannot decide the record.
func TestRecordsOfTheFirstRelease(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	l, first := open(t, s, kubelog.Options{}), records(t, s)
	at := func(id string) wal.Entry {
		for e, err := range l.Open(t.Context()) {
			require.NoError(t, err)
			if e.ID == id {
				return e
			}
		}
		t.Fatalf("%s is not open", id)
		return wal.Entry{}
	}

	pending, err := first.Propose(t.Context(), wal.Entry{ID: "a", Owner: "them/1", State: "proposing", Data: []byte("x")})
	require.NoError(t, err)
	d, err := l.Decision(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, wal.Decision{ID: "a", UID: pending.UID, Version: pending.UID + "/" + pending.Version, Owner: "them/1"}, d)
	taken := at("a")
	taken.Owner = "me/1"
	taken, err = l.Advance(t.Context(), taken)
	require.NoError(t, err)
	_, err = first.Decide(t.Context(), "a", pending.Version, "eu", "u1")
	require.Error(t, err, "its former owner cannot decide it")
	require.NoError(t, l.End(t.Context(), taken, []byte("withdrawn")))
	_, err = l.Decision(t.Context(), "a")
	require.ErrorIs(t, err, wal.ErrNotFound, "an ended record has no decision")
	_, err = first.Propose(t.Context(), wal.Entry{ID: "a"})
	require.Error(t, err, "a late request does not begin it again")

	pending, err = first.Propose(t.Context(), wal.Entry{ID: "b", Owner: "them/1"})
	require.NoError(t, err)
	stale := at("b")
	_, err = first.Decide(t.Context(), "b", pending.Version, "eu", "u1")
	require.NoError(t, err)
	require.ErrorIs(t, l.End(t.Context(), stale, nil), wal.ErrStale, "a decided record cannot be withdrawn")
	d, err = l.Decision(t.Context(), "b")
	require.NoError(t, err)
	require.True(t, d.Decided)
	require.Equal(t, "eu", d.Target)
	require.Equal(t, "u1", d.TargetUID)
	require.NoError(t, l.End(t.Context(), at("b"), []byte("done")))

	_, err = l.Begin(t.Context(), wal.Entry{ID: "c"})
	require.NoError(t, err)
	_, err = l.Decision(t.Context(), "c")
	require.ErrorIs(t, err, wal.ErrNotFound, "an entry of this release has no decision")
}
