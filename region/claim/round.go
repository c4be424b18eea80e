// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
)

// round is one attempt to settle one region: a state machine without I/O and
// without a clock. Whoever runs it carries out what next says and tells answer
// how it went, until next returns nothing.
//
// What makes it safe: the decision is written by compare-and-swap on what the
// round has read, and only after the claim that held the region was read to be
// absent, at its peer and not in a copy.
type round struct {
	view    view
	now     time.Time
	step    verb
	verdict verdict
	tries   int
	// again says that the region is not settled and has to be looked at later.
	again bool
	// changed says that the round wrote the decision.
	changed bool
}

// verb is what a command does.
type verb int

const (
	// nothing ends the round.
	nothing verb = iota
	// read reads the decision in the plane.
	read
	// confirmGone reads, at its peer, the claim that held the region.
	confirmGone
	// closeGate makes the ServiceCluster of that peer Pending.
	closeGate
	// confirmThere reads, at its peer, the claim that is to hold the region.
	confirmThere
	// write writes the decision over what was read, none included.
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

// outcome is how a request ended.
type outcome int

const (
	// failed: it is not known to be applied, and may be.
	failed outcome = iota
	// done: it was carried out; of confirmations: the claim is there.
	done
	// missing: the claim is not there, another has its name, or it is being deleted.
	missing
	// stale: the decision is not the one that was read.
	stale
)

// reply answers a command.
type reply struct {
	outcome  outcome
	decision decision // that was read
}

// maxTries bounds how often a round begins anew: others go on meanwhile.
const maxTries = 4

func newRound(v view, now time.Time) *round {
	return &round{view: v, now: now, step: read}
}

// next returns what is to be done now.
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

// granted is the decision for the winner. One that only follows its holder to
// another name, or is remembered by its claim, keeps its time.
func (r *round) granted() decision {
	winner, since := r.verdict.winner, r.now
	switch held := r.view.decision; {
	case held.uid == winner.uid:
		since = held.since
	case held.none() && !winner.bound.IsZero():
		since = winner.bound
	case !since.After(held.since):
		// Clocks differ between arbiters; decisions about a region follow one another.
		since = held.since.Add(time.Second)
	}
	return decision{peer: winner.peer, uid: winner.uid, since: since}
}

// answer goes on after the command that next returned.
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
			// The copy is behind, or nobody can say.
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
			// Somebody else decided, or the answer was lost: what is on record
			// counts.
			if r.tries++; r.tries < maxTries {
				r.step = read
				return
			}
			r.stop(true)
		}
	}
}

// learn takes the decision that was read. What the copies say of its holder is
// kept only if it is about the same one.
func (r *round) learn(d decision) {
	if d != r.view.decision {
		known := !d.none() && d.peer == r.view.decision.peer
		if !known {
			r.view.left, r.view.departed, r.view.holder = false, false, r.contactOf(d.peer)
		}
		r.view.decision = d
	}
}

// contactOf is that of a peer one of whose claims is known; one of which nothing
// is known may hold anything.
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

// proceed goes on once nothing stands against the verdict any more.
func (r *round) proceed() {
	if r.verdict.act == vacate {
		r.step = erase
		return
	}
	r.step = confirmThere
}

// remembered says whether the winner is one that was Bound before its decision was
// lost and whose peer does not answer: it keeps what it had.
func (r *round) remembered() bool {
	w := r.verdict.winner
	return r.view.decision.none() && !w.bound.IsZero() && w.contact != fresh
}

// dismiss leaves the winner out: it could not be read, or is not there any more.
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
