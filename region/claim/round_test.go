// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDecisionsFollowOneAnotherInTime: the times of decisions increase even if an arbiter's clock
// is behind.
func TestDecisionsFollowOneAnotherInTime(t *testing.T) {
	t.Parallel()
	r := newRound(view{decision: heldAt(1), holder: fresh, candidates: []candidate{at(0, 0)}, settled: true}, noon.Add(-time.Hour))
	var told []verb
	for c := r.next(); c.verb != nothing; c = r.next() {
		told = append(told, c.verb)
		switch c.verb {
		case read:
			r.answer(reply{outcome: done, decision: heldAt(1)})
		case confirmGone:
			require.Equal(t, heldAt(1).peer, c.peer)
			r.answer(reply{outcome: missing})
		case write:
			require.Equal(t, decision{peer: "p0", uid: "u0", since: noon.Add(time.Second)}, c.decision)
			r.answer(reply{outcome: done})
		default:
			r.answer(reply{outcome: done})
		}
	}
	require.Equal(t, []verb{read, confirmGone, closeGate, confirmThere, write}, told)
	require.True(t, r.changed)
	require.False(t, r.again)
}

// TestARoundThatLosesEveryRaceEnds checks that a round whose writes are all stale ends after
// maxTries writes and requests another reconcile.
func TestARoundThatLosesEveryRaceEnds(t *testing.T) {
	t.Parallel()
	r := newRound(view{candidates: []candidate{at(0, 0)}, settled: true}, noon)
	writes := 0
	for c := r.next(); c.verb != nothing; c = r.next() {
		switch c.verb {
		case write:
			writes++
			r.answer(reply{outcome: stale})
		default:
			r.answer(reply{outcome: done})
		}
	}
	require.Equal(t, maxTries, writes)
	require.True(t, r.again)
	require.False(t, r.changed)
}

// TestACandidateThatCannotBeReadIsPassedOver checks that a round skips a candidate that it cannot
// read, because the candidate's peer may be unreachable.
func TestACandidateThatCannotBeReadIsPassedOver(t *testing.T) {
	t.Parallel()
	r := newRound(view{candidates: []candidate{at(0, 0), at(1, 5)}, settled: true}, noon)
	for c := r.next(); c.verb != nothing; c = r.next() {
		o := done
		if c.verb == confirmThere && c.peer == "p0" {
			o = failed
		}
		r.answer(reply{outcome: o})
	}
	require.Equal(t, decision{peer: "p1", uid: "u1", since: noon}, r.view.decision)
}
