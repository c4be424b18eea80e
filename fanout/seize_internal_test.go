// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// An entry that has changed since it was read is not taken over: its owner is alive, or another
// coordinator has taken it over.
func TestAnEntryThatMovedIsNotSeized(t *testing.T) {
	log := waltest.NewSharedMemory()
	l := &entries{log: log, holder: "me/1", watched: map[string]watched{}}
	read, err := log.Begin(t.Context(), wal.Entry{ID: "a", Owner: "them/1"})
	require.NoError(t, err)
	now, err := log.Advance(t.Context(), read)
	require.NoError(t, err)
	_, err = l.seize(t.Context(), read)
	require.ErrorIs(t, err, errAtWork)
	taken, err := l.seize(t.Context(), now)
	require.NoError(t, err)
	require.Equal(t, "me/1", taken.Owner)
}

// Ending an entry fails if another coordinator has already ended it with a different outcome.
func TestAnEndOfAnotherCoordinatorIsNotOurs(t *testing.T) {
	log := waltest.NewSharedMemory()
	l := newLogEntry(&entries{log: log})
	e, err := log.Begin(t.Context(), wal.Entry{ID: "a", Key: "operation/a", Owner: "them/1"})
	require.NoError(t, err)
	require.NoError(t, log.End(t.Context(), e, []byte("committed")))
	require.ErrorIs(t, l.end(t.Context(), e, []byte("aborted"), false), wal.ErrStale)
	require.NoError(t, l.end(t.Context(), e, []byte("committed"), false))
}

// A 404 of a server that does not serve the type proves nothing about the object.
func TestATypeThatIsNotServedIsNoAbsence(t *testing.T) {
	absent := apierrors.NewNotFound(peerSets.GroupResource(), "a")
	require.True(t, isAbsent(absent))
	require.Equal(t, protocol.NotFound, classifyRead(absent))
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", peerSets.GroupResource(), "a", "404 page not found", 0, true)
	require.False(t, isAbsent(unserved))
	require.Equal(t, protocol.Denied, classifyRead(unserved))
}
