// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/rivals"
	"github.com/atoll-dev/atoll/region"
)

// action is what a reconcile does with a central object in the peers.
type action uint8

const (
	actionNone   action = iota // nothing now: the object is in the peers, or has to wait
	actionAdd                  // add it to all peers
	actionUpdate               // make its content the next revision, and bring that to all peers
	actionAgree                // bring the agreed content to peers that lack it
	actionAdopt                // put it under the protocol in the peer where it is
	actionRemove               // remove it from all peers
	actionSweep                // let the coordinator's sweep judge its deletion
)

// plan is what a reconcile does and reports.
type plan struct {
	action   action
	finalize bool   // the central object gets the Replicator's finalizer first
	digest   string // of the content that every peer should have; empty if the Replicator does not report on the object yet
	removing bool

	reason  v1alpha1.AccountConditionReason // why the object cannot be replicated now; empty if it can
	message string
	differs *differingHome // the home whose differing fields are added to message; nil without one
}

// differingHome is a home whose content differs from the central object and must not be changed.
type differingHome struct {
	peer region.PeerName
	ours bool // it was made for the central object
}

func conflict(format string, args ...any) plan {
	return plan{reason: v1alpha1.AccountReasonConflict, message: fmt.Sprintf(format, args...)}
}

// waits returns the plan for an object that cannot be replicated while peers are unreachable.
func waits(message string) plan {
	return plan{reason: v1alpha1.AccountReasonPeersUnknown, message: message}
}

// central is the desired state of a central object whose plane is not a peer.
type central struct {
	uid    types.UID
	digest string
	bare   string // content without the origin
	agreed bool   // once the peers have the content, it may not change
	remove string // the command that deletes an object of the name
}

// plan decides how the object gets into all peers. It is pure.
func (c central) plan(observed []observation) plan {
	home := primary(observed)
	var p plan
	switch {
	case home == nil:
		p = c.planAdd(observed)
	case home.err != nil:
		p = waits(fmt.Sprintf("its home %s is unreachable", home.peer))
	case home.copy.Stage == fanoutv1alpha1.StageRemoving || home.copy.Terminating:
		p = conflict("an object of the same name is being removed from the peers: this one is added after that")
	default:
		return c.planUpdate(observed, home)
	}
	p.digest = c.digest
	return p
}

// planAdd plans for an object that has no home yet.
func (c central) planAdd(observed []observation) plan {
	switch all := rivalsOf(observed); len(all) {
	case 0:
	case 1:
		return conflict("an object of the same name was applied in %s without a claim: adopt or delete it there", all[0].Peer)
	default:
		return conflict("%s", rivals.Message(c.remove, all))
	}
	if len(unreachable(observed)) > 0 {
		// Wait: an add would fail now, and would only delay other objects.
		return waits("adding it needs every peer")
	}
	switch peer := homeless(observed); {
	case peer == "":
	case anyUnreachable(observed):
		return waits(fmt.Sprintf("the home of the object in %s may be in an unreachable peer", peer))
	default:
		// An add would be rejected, but only after it has reserved the name in some peers.
		return conflict("the object in %s holds the name, and its home is lost: bring the peer of the home back, or release the object", peer)
	}
	return plan{action: actionAdd, finalize: true}
}

// planUpdate plans for an object that has a home. The home may have other content than the central
// object, and other peers may have an earlier revision.
func (c central) planUpdate(observed []observation, home *observation) plan {
	ours := home.copy.Origin == c.uid
	equal := home.copy.Digest == c.digest && !home.copy.edited()
	if !equal && home.copy.Bare != c.bare && (c.agreed || !ours) {
		return plan{digest: c.digest, differs: &differingHome{home.peer, ours}}
	}
	p := plan{digest: c.digest, finalize: true}
	if c.agreed && !equal && !ours {
		// The origin is part of the content that the peers have agreed on, so it cannot change:
		// expect the home's digest.
		p.digest = home.copy.Digest
	}
	switch behind := lagging(observed, home); {
	case c.agreed && behind:
		p.action = actionAgree
	case !c.agreed && (behind || !equal):
		p.action = actionUpdate
	}
	return p
}

// local is the state of a central object whose plane is itself a peer. Once the object has a claim,
// the protocol of package fanout governs it in that peer, too.
type local struct {
	peer     region.PeerName
	claimed  bool
	stage    fanoutv1alpha1.Stage
	digest   string
	seeEdits bool // the kind detects edits, and an edit is new content

	deleted   bool
	requested bool // the deletion only requests a removal: the object is still in effect
	held      bool // the requested removal is held

	self   rivals.Rival // this object, while it has no claim
	remove string       // the command that deletes an object of the name
}

// plan decides how the object gets into the other peers. An object without a claim is adopted. An
// edit becomes the next revision, and a deletion becomes a removal. It is pure.
func (l local) plan(observed []observation) plan {
	if !l.claimed {
		return l.planAdopt(observed)
	}
	if l.stage == fanoutv1alpha1.StageReserved {
		return plan{removing: l.deleted} // another operation holds the name, and has not ended
	}
	p := plan{digest: l.digest, removing: l.deleted && !l.requested || l.stage == fanoutv1alpha1.StageRemoving}
	home := primary(observed)
	switch {
	case home == nil:
		p.reason, p.message = v1alpha1.AccountReasonPeersUnknown, "no reachable peer is its home"
	case home.peer != l.peer:
		p.digest = home.copy.Digest // the central object is a replica, and follows its home
	case l.requested && !l.held:
		p.action = actionSweep
	case p.removing && anyUnreachable(observed):
		// The coordinators' sweeps continue when the peers are reachable.
	case p.removing:
		p.action = actionRemove
	case home.copy.Digest != l.digest && l.seeEdits, lagging(observed, home):
		p.action = actionUpdate
	}
	return p
}

// planAdopt plans for an object that was applied in the central plane and has no claim yet.
func (l local) planAdopt(observed []observation) plan {
	if l.deleted {
		return plan{removing: true}
	}
	p := plan{action: actionAdopt}
	all := rivalsOf(observed)
	if home := primary(observed); home != nil {
		p = conflict("an object in %s holds the name", home.peer)
	} else if slices.ContainsFunc(all, func(r rivals.Rival) bool { return r.Peer != string(l.peer) }) {
		p = conflict("%s", rivals.Message(l.remove, append(all, l.self)))
	} else if len(unreachable(observed)) > 0 {
		p = waits("adopting it needs every peer")
	}
	p.digest = l.digest
	return p
}
