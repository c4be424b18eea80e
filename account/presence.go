// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// Presence is the state of a central object in the peers.
type Presence struct {
	Key types.NamespacedName
	UID types.UID // of the central object
	// Total is the number of Active members of the ring. Present is the number of these that hold
	// the latest revision in effect, ready or not; it is zero while Removing is true.
	Total, Present int
	// Revision is the number of the home's revision; zero if no committed home is known.
	Revision int64
	// Home is the peer that has the object's home; empty if unknown.
	Home region.PeerName
	// Exceptions are the peers that lack the latest revision or hold other content, are removing
	// the object, have it without a claim that can be read, are unreachable, are not ready with
	// the object, or are not Active members, sorted by peer. While
	// Removing is true, they are the peers that still have the object or are unreachable.
	Exceptions []Exception
	// Reason is why the object cannot be replicated now, for example because another object has its
	// name; empty if it can. Message explains Reason, or reports the last error; empty if there is
	// neither.
	Reason  v1alpha1.AccountConditionReason
	Message string
	// Removing is true while the object is being removed from all peers. In the case Apart of the
	// package's documentation it is also true while the deletion is held.
	Removing bool
	// Hold is why a deletion in the central plane is held, or zero if no deletion is held. A held
	// object stays in effect in all peers.
	Hold fanout.Hold
}

// Exception is a peer, and the reason why a Presence lists it in Exceptions.
type Exception struct {
	Peer   region.PeerName
	Reason v1alpha1.AccountConditionReason
	// Message describes the exception in one line.
	Message string
}

// Complete reports whether every Active member holds the latest revision and is ready with it,
// Reason is empty, and the object is not being removed.
func (p Presence) Complete() bool {
	return p.Reason == "" && !p.Removing && p.Total > 0 && p.Present == p.Total &&
		len(p.peers(v1alpha1.AccountReasonNotReady)) == 0
}

// peers returns the peers whose exception has one of the given reasons, sorted by name.
func (p Presence) peers(reasons ...v1alpha1.AccountConditionReason) []region.PeerName {
	var names []region.PeerName
	for _, e := range p.Exceptions {
		if slices.Contains(reasons, e.Reason) {
			names = append(names, e.Peer)
		}
	}
	return names
}

// Missing returns the reachable members that lack the latest revision or hold other content, sorted
// by name. While Removing is true, it returns the reachable peers that still have the object.
func (p Presence) Missing() []region.PeerName {
	return p.peers(v1alpha1.AccountReasonMissing, v1alpha1.AccountReasonBehind, v1alpha1.AccountReasonEdited,
		v1alpha1.AccountReasonConflict, v1alpha1.AccountReasonRemoving)
}

// Unknown returns the unreachable members, sorted by name. While Removing is true, it returns all
// unreachable peers. Each of them may or may not have the object.
func (p Presence) Unknown() []region.PeerName { return p.peers(v1alpha1.AccountReasonNoAnswer) }

// wanted is the desired state that the peers' objects are compared with.
type wanted struct {
	digest   string // of the desired content
	origin   types.UID
	removing bool
}

// presence summarizes the observed state of the peers. It is pure.
func presence(key types.NamespacedName, observed []observation, want wanted) Presence {
	p := Presence{Key: key, Removing: want.removing}
	home := primary(observed)
	if home != nil {
		p.Home, p.Revision = home.peer, home.copy.Revision
	}
	for _, s := range observed {
		if s.counts() {
			p.Total++
		}
		reason, message := judge(s, home, want)
		if s.counts() && (reason == "" || reason == v1alpha1.AccountReasonNotReady) && !want.removing {
			p.Present++
		}
		if reason != "" {
			p.Exceptions = append(p.Exceptions, Exception{Peer: s.peer, Reason: reason, Message: message})
		}
	}
	return p
}

// judge returns why a peer is an exception, or an empty reason for any other peer.
func judge(s observation, home *observation, want wanted) (reason v1alpha1.AccountConditionReason, message string) {
	if want.removing {
		return judgeRemoval(s, want.origin)
	}
	c := s.copy
	switch {
	case !s.counts():
		return v1alpha1.AccountReasonNoMember, fmt.Sprintf("it does not count until it is a member of the ring (now %s)",
			cmp.Or(string(s.member), "not joined"))
	case s.err != nil:
		return v1alpha1.AccountReasonNoAnswer, brief(s.err.Error())
	case c == nil:
		return v1alpha1.AccountReasonMissing, "it lacks the object"
	case c.Bad != "":
		return v1alpha1.AccountReasonConflict, brief("its claim cannot be read: " + c.Bad)
	case c.Stage == "":
		return v1alpha1.AccountReasonConflict, "an object of the same name was applied there without a claim: adopt or delete it"
	case c.Stage == fanoutv1alpha1.StageRemoving || c.Terminating:
		return v1alpha1.AccountReasonRemoving, "its object is being removed"
	case c.Stage != fanoutv1alpha1.StageActive:
		return v1alpha1.AccountReasonBehind, fmt.Sprintf("its object is %s, not yet in effect", c.Stage)
	case home != nil && c.Revision < home.copy.Revision:
		return v1alpha1.AccountReasonBehind, fmt.Sprintf("it has revision %d of %d", c.Revision, home.copy.Revision)
	case c.Digest != want.digest:
		return v1alpha1.AccountReasonBehind, fmt.Sprintf("it has revision %d, which differs from the desired content", c.Revision)
	case c.edited():
		return v1alpha1.AccountReasonEdited, "its object was changed by hand"
	case !c.Ready:
		return v1alpha1.AccountReasonNotReady, brief(cmp.Or(c.NotReady, "its object is not ready yet"))
	default:
		return "", ""
	}
}

// judgeRemoval does the work of judge for an object that is being removed from all peers.
func judgeRemoval(s observation, origin types.UID) (reason v1alpha1.AccountConditionReason, message string) {
	switch {
	case s.err != nil:
		return v1alpha1.AccountReasonNoAnswer, brief("it has not confirmed that nothing is left: " + s.err.Error())
	case s.copy != nil && s.copy.Origin == origin:
		return v1alpha1.AccountReasonRemoving, "its object still exists"
	default:
		return "", ""
	}
}

// maxExceptions is the greatest number of exceptions that a status names.
const maxExceptions = 32

// conditions returns the conditions for the Presence, without transition times. It is pure.
func (p Presence) conditions(generation int64) []metav1.Condition {
	present := metav1.Condition{Type: string(v1alpha1.AccountConditionPresent), ObservedGeneration: generation, Message: p.summary()}
	ready := metav1.Condition{Type: string(v1alpha1.AccountConditionReady), ObservedGeneration: generation}
	switch {
	case p.Removing:
		present.Status, present.Reason = metav1.ConditionFalse, string(v1alpha1.AccountReasonRemoving)
	case p.Reason == v1alpha1.AccountReasonConflict:
		present.Status, present.Reason = metav1.ConditionFalse, string(p.Reason)
	case len(p.Missing()) > 0:
		present.Status, present.Reason = metav1.ConditionFalse, string(v1alpha1.AccountReasonPeersMissing)
	case len(p.Unknown()) > 0:
		present.Status, present.Reason = metav1.ConditionUnknown, string(v1alpha1.AccountReasonPeersUnknown)
	case p.Total == 0:
		present.Status, present.Reason = metav1.ConditionUnknown, string(v1alpha1.AccountReasonPending)
	default:
		present.Status, present.Reason = metav1.ConditionTrue, string(v1alpha1.AccountReasonComplete)
	}
	ready.Status, ready.Reason, ready.Message = present.Status, present.Reason, present.Message
	if unready := p.peers(v1alpha1.AccountReasonNotReady); ready.Status == metav1.ConditionTrue && len(unready) > 0 {
		ready.Status, ready.Reason = metav1.ConditionFalse, string(v1alpha1.AccountReasonPeersNotReady)
		ready.Message = "not ready in " + names(unready)
	}
	all := []metav1.Condition{ready, present}
	if p.Hold.Reason != "" {
		all = append(all, metav1.Condition{Type: ConditionRemovalHeld, Status: metav1.ConditionTrue, Reason: p.Hold.Reason,
			Message: brief(p.Hold.Message), ObservedGeneration: generation})
	}
	for _, e := range p.bounded() {
		status := metav1.ConditionFalse
		switch e.Reason {
		case v1alpha1.AccountReasonNoAnswer, v1alpha1.AccountReasonNoMember:
			status = metav1.ConditionUnknown
		case v1alpha1.AccountReasonNotReady:
			status = metav1.ConditionTrue
		}
		all = append(all, metav1.Condition{Type: string(v1alpha1.AccountConditionPresentIn) + string(e.Peer), Status: status,
			Reason: string(e.Reason), Message: e.Message, ObservedGeneration: generation})
	}
	return all
}

// summary returns one line: p.Message, how many peers hold the latest revision, and which peers
// lack it or are unreachable. During a removal the line reports which peers still have the object
// or are unreachable.
func (p Presence) summary() string {
	var parts []string
	if p.Message != "" {
		parts = append(parts, p.Message)
	}
	if p.Removing {
		if left := p.Missing(); len(left) > 0 {
			parts = append(parts, "still in "+names(left))
		}
	} else {
		parts = append(parts, fmt.Sprintf("%d of %d peers hold the latest revision", p.Present, p.Total))
		if missing := p.Missing(); len(missing) > 0 {
			parts = append(parts, "missing in "+names(missing))
		}
	}
	if unknown := p.Unknown(); len(unknown) > 0 {
		parts = append(parts, "no answer from "+names(unknown))
	}
	return strings.Join(parts, "; ")
}

// bounded returns the exceptions that fit into a status: the gravest ones, sorted by peer.
func (p Presence) bounded() []Exception {
	rank := func(e Exception) int {
		switch e.Reason {
		case v1alpha1.AccountReasonNoAnswer:
			return 1
		case v1alpha1.AccountReasonNotReady:
			return 2
		case v1alpha1.AccountReasonNoMember:
			return 3
		default:
			return 0
		}
	}
	all := slices.Clone(p.Exceptions)
	slices.SortStableFunc(all, func(a, b Exception) int { return cmp.Compare(rank(a), rank(b)) })
	all = all[:min(len(all), maxExceptions)]
	slices.SortFunc(all, func(a, b Exception) int { return cmp.Compare(a.Peer, b.Peer) })
	return all
}

// names joins the names of at most eight peers.
func names(peers []region.PeerName) string {
	const most = 8
	texts := make([]string, 0, most)
	for _, p := range peers[:min(len(peers), most)] {
		texts = append(texts, string(p))
	}
	text := strings.Join(texts, ", ")
	if more := len(peers) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// phase returns a one-word summary for people.
func (p Presence) phase() v1alpha1.AccountPhase {
	switch {
	case p.Removing:
		return v1alpha1.AccountTerminating
	case p.Complete():
		return v1alpha1.AccountReady
	default:
		return v1alpha1.AccountUnready
	}
}
