// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
)

// round is one attempt to settle one region: a state machine without I/O and without a clock. The
// caller executes the command that next returns and passes the result to answer, until next
// returns the command nothing.
//
// A round is safe for two reasons. It writes the decision by compare-and-swap on the decision that
// it read. And as long as the holder's peer is in the ring, it withdraws the region from the holder
// only after a live read at that peer has shown that the holding claim is gone.
type round struct {
	view    view
	now     time.Time
	step    verb
	verdict verdict
	tries   int
	// again means that the region is not settled and has to be reconciled again later.
	again bool
	// changed means that the round wrote the decision.
	changed bool
}

// verb is the kind of a command.
type verb int

const (
	// nothing ends the round.
	nothing verb = iota
	// read reads the decision in the plane.
	read
	// confirmGone reads, at its peer, the claim that held the region.
	confirmGone
	// closeGate sets the ServiceCluster of the old holder to Pending.
	closeGate
	// confirmThere reads, at its peer, the claim that is to hold the region.
	confirmThere
	// write writes the decision in place of the one that was read, if any.
	write
	// erase deletes the decision that was read.
	erase
)

// command is one request.
type command struct {
	verb     verb
	peer     region.PeerName
	uid      types.UID
	decision decision // of write
}

// outcome is the result of a request.
type outcome int

const (
	// failed: the request may or may not have been applied.
	failed outcome = iota
	// done: applied; for confirmations: the claim exists.
	done
	// missing: the claim is absent, replaced by another of its name, or being deleted.
	missing
	// stale: the decision has changed since it was read.
	stale
)

// reply is the result of a command.
type reply struct {
	outcome  outcome
	decision decision // that was read
}

// maxTries bounds how often a round starts again while other arbiters write.
const maxTries = 4

func newRound(v view, now time.Time) *round {
	return &round{view: v, now: now, step: read}
}

// next returns the next command.
func (r *round) next() command {
	held, winner := r.view.decision, r.verdict.winner
	switch r.step {
	case confirmGone, closeGate:
		return command{verb: r.step, peer: held.peer, uid: held.uid}
	case confirmThere:
		return command{verb: r.step, peer: winner.peer, uid: winner.uid}
	case write:
		return command{verb: write, decision: r.granted()}
	default:
		return command{verb: r.step}
	}
}

// granted returns the decision for the winner. If the winner is the holder under another name, or
// was Bound by a lost decision, the decision keeps its time.
func (r *round) granted() decision {
	winner, since := r.verdict.winner, r.now
	switch held := r.view.decision; {
	case held.uid == winner.uid:
		since = held.since
	case held.none() && !winner.bound.IsZero():
		since = winner.bound
	case !since.After(held.since):
		// Arbiters' clocks differ, but the times of a region's decisions must increase.
		since = held.since.Add(time.Second)
	}
	return decision{peer: winner.peer, uid: winner.uid, since: since}
}

// answer processes the result of the command that next returned: it sets the next step of the round, or stops the
// round.
func (r *round) answer(a reply) {
	switch r.step {
	case nothing:
	case read:
		if a.outcome != done {
			r.stop(true)
			return
		}
		r.learn(a.decision)
		r.judge()
	case confirmGone:
		if a.outcome != missing {
			// The cache is stale, or the read failed.
			r.stop(true)
			return
		}
		r.step = closeGate
	case closeGate:
		if a.outcome == failed {
			r.stop(true)
			return
		}
		r.proceed()
	case confirmThere:
		if a.outcome != done && !r.remembered() {
			r.dismiss()
			r.judge()
			return
		}
		r.step = write
	case write, erase:
		switch a.outcome {
		case done:
			r.view.decision = decision{}
			if r.step == write {
				r.view.decision = r.granted()
			}
			r.changed = true
			r.stop(false)
		default:
			// Another arbiter decided, or the response was lost: read the recorded decision.
			if r.tries++; r.tries < maxTries {
				r.step = read
				return
			}
			r.stop(true)
		}
	}
}

// learn takes the decision that was read. It keeps the cached state of the holder's peer only if
// the decision names the same peer as before.
func (r *round) learn(d decision) {
	if d != r.view.decision {
		known := !d.none() && d.peer == r.view.decision.peer
		if !known {
			r.view.left, r.view.departed, r.view.holder = false, false, r.contactOf(d.peer)
		}
		r.view.decision = d
	}
}

// contactOf returns the contact of a peer with a known claim. A peer without one may hold anything:
// it counts as silent.
func (r *round) contactOf(peer region.PeerName) contact {
	for _, c := range r.view.candidates {
		if c.peer == peer {
			return c.contact
		}
	}
	return silent
}

func (r *round) judge() {
	r.verdict = decide(r.view)
	switch {
	case r.verdict.act == keep:
		r.stop(false)
	case r.verdict.act == wait:
		r.stop(true)
	case r.verdict.lost && !r.view.left:
		r.step = confirmGone
	default:
		r.proceed()
	}
}

// proceed continues once no old holder blocks the verdict.
func (r *round) proceed() {
	if r.verdict.act == vacate {
		r.step = erase
		return
	}
	r.step = confirmThere
}

// remembered reports whether the winner was Bound by a decision that was lost, and its peer is
// unreachable: then it keeps the region.
func (r *round) remembered() bool {
	w := r.verdict.winner
	return r.view.decision.none() && !w.bound.IsZero() && w.contact != fresh
}

// dismiss removes the winner from the candidates: it could not be read, or is gone.
func (r *round) dismiss() {
	w := r.verdict.winner
	r.view.candidates = slices.DeleteFunc(slices.Clone(r.view.candidates), func(c candidate) bool {
		return c.peer == w.peer && c.uid == w.uid
	})
	r.again = true
}

func (r *round) stop(again bool) {
	r.again = r.again || again
	r.step = nothing
}
