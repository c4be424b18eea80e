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

// answerless is a log. If lose is set, it applies the next Advance, and returns an error instead of
// the answer.
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

// If the answer to a sign of life was lost, the next sign of life succeeds. Otherwise other
// coordinators would take over a live operation. After another coordinator has taken the entry
// over, beat returns ErrStale.
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
