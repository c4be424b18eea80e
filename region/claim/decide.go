// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
)

// decision says which RegionClaim holds a region. The zero value is that none does.
type decision struct {
	peer  region.PeerName
	uid   types.UID // of the RegionClaim
	since time.Time
}

func (d decision) none() bool { return d.uid == "" }

// contact is what an arbiter has of a peer.
type contact int

const (
	// awaited has not answered yet and may do so soon.
	awaited contact = iota
	// fresh is one whose changes flow.
	fresh
	// silent did not answer in time, or does not any more.
	silent
)

// candidate is a RegionClaim as an arbiter last saw it.
type candidate struct {
	peer    region.PeerName
	cluster types.UID // of the peer
	contact contact
	uid     types.UID
	created time.Time
	leaving bool      // it is being deleted
	bound   time.Time // since when its status says Bound; zero if it does not
}

// view is what an arbiter knows of one region.
type view struct {
	decision   decision
	candidates []candidate
	holder     contact // of the peer that the decision names
	left       bool    // that peer is not in the ring
	departed   bool    // and has not been for so long that it is given up
	awaiting   bool    // some peer of the ring has not answered yet, and is worth waiting for
	settled    bool    // the claims were there long enough for their rivals to show
}

// verdict is what follows from a view.
type verdict struct {
	act    act
	winner candidate // of grant
	lost   bool      // the decision's holder is given up by it
}

type act int

const (
	// keep leaves the decision as it is.
	keep act = iota
	// wait leaves it until more is known: nobody can be chosen yet.
	wait
	// grant gives the region to the winner.
	grant
	// vacate withdraws the decision: nobody claims the region.
	vacate
)

// decide is the rule of arbitration. A decision stands as long as the claim that
// it names may exist: only a peer in contact that does not show it any more, or
// one that left the ring, loses it. Without a decision the choice is among the
// claims that are there, whatever the order in which they were seen.
func decide(v view) verdict {
	d := v.decision
	if !d.none() {
		if found, ok := v.find(d.uid); ok && (found.peer == d.peer || v.left && found.contact == fresh) {
			if found.peer != d.peer {
				// The peer goes by another name now.
				return verdict{act: grant, winner: found}
			}
			return verdict{act: keep}
		}
		if v.left && !v.departed || !v.left && v.holder != fresh {
			return verdict{act: keep}
		}
	}
	winner, ok := v.choose()
	lost := !d.none()
	switch {
	case !ok && v.awaiting:
		return verdict{act: wait}
	case !ok && lost:
		return verdict{act: vacate, lost: true}
	case !ok:
		return verdict{act: keep}
	case v.awaiting || !v.settled:
		return verdict{act: wait}
	}
	return verdict{act: grant, winner: winner, lost: lost}
}

// find returns the claim of that UID, in the decision's peer if it is there.
func (v view) find(uid types.UID) (found candidate, ok bool) {
	for _, c := range v.candidates {
		if c.uid == uid && (!ok || c.peer == v.decision.peer) {
			found, ok = c, true
		}
	}
	return found, ok
}

// choose returns the claim that wins among those that are there. A status that
// says Bound, without a decision on record, is what is left of one that was lost,
// and counts also in a peer that does not answer.
func (v view) choose() (candidate, bool) {
	var eligible []candidate
	for _, c := range v.candidates {
		remembered := v.decision.none() && !c.bound.IsZero()
		if !c.leaving && (c.contact == fresh || remembered) {
			eligible = append(eligible, c)
		}
	}
	if len(eligible) == 0 {
		return candidate{}, false
	}
	return slices.MinFunc(eligible, v.precedes), true
}

// precedes orders claims: the latest that is remembered as Bound, then the oldest,
// then by the cluster's UID, which no clock has touched.
func (v view) precedes(a, b candidate) int {
	if v.decision.none() {
		if c := b.bound.Compare(a.bound); c != 0 {
			return c
		}
	}
	return cmp.Or(
		a.created.Compare(b.created),
		cmp.Compare(a.cluster, b.cluster),
		cmp.Compare(a.peer, b.peer),
		cmp.Compare(a.uid, b.uid),
	)
}
