// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
)

// answerless is a log that applies an Advance and loses its answer while lose is set.
type answerless struct {
	wal.Log
	stored wal.Entry
	lose   bool
}

func (*answerless) Shared() bool { return true }

func (l *answerless) Advance(_ context.Context, e wal.Entry) (wal.Entry, error) {
	if e.Version != l.stored.Version {
		return l.stored, wal.ErrStale
	}
	e.Version += "+"
	l.stored = e
	if l.lose {
		l.lose = false
		return wal.Entry{}, errors.New("in doubt")
	}
	return e, nil
}

// The heartbeats continue after the answer to one was lost: otherwise other coordinators would
// take over a live operation. They end after another coordinator has taken the entry over.
func TestHeartbeatAfterALostAnswer(t *testing.T) {
	t.Parallel()
	e := wal.Entry{ID: "a", Owner: "me", Version: "1"}
	log := &answerless{stored: e, lose: true}
	r := newLogEntry(&entries{log: log, holder: "me"})
	r.took(e)
	require.ErrorContains(t, r.beat(t.Context()), "in doubt")
	require.NoError(t, r.beat(t.Context()))
	require.Equal(t, log.stored, r.present())

	log.stored.Owner, log.stored.Version = "them", "2"
	require.ErrorIs(t, r.beat(t.Context()), wal.ErrStale)
	require.Equal(t, "them", log.stored.Owner)
}
