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

// decision names the RegionClaim that holds a region. The zero value means that no claim holds it.
type decision struct {
	peer  region.PeerName
	uid   types.UID // of the RegionClaim
	since time.Time
}

func (d decision) none() bool { return d.uid == "" }

// contact is the state of an arbiter's connection to a peer.
type contact int

const (
	// awaited: no response yet, and one is expected soon.
	awaited contact = iota
	// fresh: the caches are synced.
	fresh
	// silent: the first response is overdue, or the peer became unreachable.
	silent
)

// candidate is a cached RegionClaim.
type candidate struct {
	peer    region.PeerName
	cluster types.UID // of the peer
	contact contact
	uid     types.UID
	created time.Time
	leaving bool      // it is being deleted
	bound   time.Time // when its status became Bound; zero if the status is not Bound
}

// view is the cached state of one region.
type view struct {
	decision   decision
	candidates []candidate
	holder     contact // of the peer that the decision names
	left       bool    // that peer is not in the ring
	departed   bool    // that peer has been missing from the ring for longer than Departure
	awaiting   bool    // some peer of the ring is awaited
	settled    bool    // the claims were known for long enough for rival claims to appear
}

// verdict is the result of decide.
type verdict struct {
	act    act
	winner candidate // of grant
	lost   bool      // the decision's holder loses the region
}

type act int

const (
	// keep does not change the decision.
	keep act = iota
	// wait leaves the decision as it is until more is known: no claim can be chosen yet.
	wait
	// grant gives the region to the winner.
	grant
	// vacate withdraws the decision: no claim for the region is left.
	vacate
)

// decide is the rule of arbitration. A decision stays while its claim may exist: the claim loses
// the region only if its peer is fresh and no longer has the claim, or if its peer has left the
// ring for long enough. Without a decision the rule chooses among the known claims, in whatever
// order they were observed.
func decide(v view) verdict {
	lost := !v.decision.none()
	if lost {
		if kept, stands := v.standing(); stands {
			return kept
		}
	}
	winner, ok := v.choose()
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

// standing returns the verdict while the decision on record stands. stands is false if the
// decision's claim is known to be gone, or if its peer has left for long enough.
func (v view) standing() (_ verdict, stands bool) {
	found, ok := v.find(v.decision.uid)
	switch {
	case ok && found.peer == v.decision.peer:
		return verdict{act: keep}, true
	case ok && v.left && found.contact == fresh:
		// The peer has rejoined under another name.
		return verdict{act: grant, winner: found}, true
	}
	if v.left && !v.departed || !v.left && v.holder != fresh {
		return verdict{act: keep}, true
	}
	return verdict{}, false
}

// find returns the claim with this UID, preferably in the decision's peer.
func (v view) find(uid types.UID) (found candidate, ok bool) {
	for _, c := range v.candidates {
		if c.uid == uid && (!ok || c.peer == v.decision.peer) {
			found, ok = c, true
		}
	}
	return found, ok
}

// choose returns the winner among the claims. Without a decision on record, a status Bound is the
// remainder of a decision that was lost, so it counts even in an unreachable peer.
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

// precedes compares two claims: negative if a wins over b, positive if b wins over a. If no
// decision is recorded, a claim whose status is Bound wins, and of two such claims the one that
// became Bound later. Otherwise the oldest claim wins, then the least UID of the cluster, which
// does not depend on clocks.
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
