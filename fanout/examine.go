// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// finding is a violation of an invariant, or work under way.
type finding struct {
	Violation
	underWay  bool
	unclaimed bool   // an object without a claim has the name of a committed object
	open      string // ID of the operation that is open in the log
	mend      met    // the object whose sweep repairs it; empty if no sweep does
	mendAt    string
}

// examine judges a survey. It is pure. A finding may be repaired by now, so a caller that acts
// on one reads again.
func (s survey) examine() []finding {
	var findings []finding
	for _, key := range s.keys() {
		findings = append(findings, s.examineKey(key)...)
	}
	return append(findings, s.examineSets()...)
}

type examination struct {
	survey   survey
	key      types.NamespacedName
	findings []finding
}

func (e *examination) report(invariant, peer string, at met, underWay bool, format string, args ...any) *finding {
	f := finding{underWay: underWay, Violation: Violation{
		Invariant: invariant,
		Peer:      region.PeerName(peer),
		Kind:      e.survey.kind.GroupKind(),
		Key:       e.key,
		Text:      fmt.Sprintf(format, args...),
	}}
	if at.obj != nil {
		f.UID = at.obj.GetUID()
		f.mend, f.mendAt = at, peer
	}
	e.findings = append(e.findings, f)
	return &e.findings[len(e.findings)-1]
}

func (s survey) examineKey(key types.NamespacedName) []finding {
	e := &examination{survey: s, key: key}
	mode := protocol.Mode(s.kind.Mode)
	var owners []string
	for _, peer := range slices.Sorted(maps.Keys(s.late[key])) {
		m := s.late[key][peer]
		if m.bad != nil {
			e.report("claim", peer, met{}, false, "the claim cannot be read: %v", m.bad)
			continue
		}
		switch {
		case m.view.Claimed && mode == protocol.Everywhere && m.view.Home.Yielded && !m.view.Primary(mode):
			e.report("move", peer, m, true, "the primary moves from here to %s", m.view.Home.Peer)
		case !m.view.Claimed, !m.view.Primary(mode):
		case m.view.Committed():
			owners = append(owners, peer)
			e.owner(peer, m)
		case m.view.Requested():
			owners = append(owners, peer)
			e.report("held", peer, m, true, "%s", requestText(m.view))
			e.owner(peer, m)
		case m.view.Leaving():
			owners = append(owners, peer)
			e.report("removal", peer, m, true, "its removal is committed and under way%s", e.waiting(m))
		case m.view.Undecided():
			e.report("I6", peer, m, true, "operation %s of %s holds the name by a record in the central log", m.view.Claim.Operation, m.view.Claim.Coordinator)
		case m.view.Pending():
			e.report("I6", peer, m, true, "operation %s of %s holds the name and is not committed", m.view.Claim.Operation, m.view.Claim.Coordinator)
		}
	}
	if len(owners) > 1 {
		name := "I1"
		if mode == protocol.Everywhere {
			name = "I10"
		}
		e.report(name, owners[0], met{}, false, "peers %s all own the name", strings.Join(owners, ", "))
	}
	for _, peer := range slices.Sorted(maps.Keys(s.late[key])) {
		m := s.late[key][peer]
		if len(owners) > 0 && m.bad == nil && !m.view.Claimed && s.late[key][owners[0]].view.InEffect() {
			e.report("I1", peer, met{}, false, "an object without a claim has the name of the committed object in %s: delete it by hand", owners[0]).unclaimed = true
		}
	}
	e.applied(owners)
	for _, peer := range slices.Sorted(maps.Keys(s.early[key])) {
		if m := s.early[key][peer]; m.bad == nil && m.view.Claimed && !m.view.Primary(mode) {
			e.secondary(peer, m)
		}
	}
	return e.findings
}

// waiting returns a text with the finalizers of others that hold an object which is being
// deleted; empty if there are none.
func (e *examination) waiting(m met) string {
	if m.obj == nil {
		return ""
	}
	held := waitsFor(e.survey.kind.GroupKind(), m.obj)
	if held == nil {
		return ""
	}
	return fmt.Sprintf(": it waits for finalizer %s, which its controller must remove", strings.Join(held.Finalizers, ", "))
}

// owner examines the objects in the other members that belong to a committed object.
func (e *examination) owner(peer string, m met) {
	mode := protocol.Mode(e.survey.kind.Mode)
	set, ok := e.survey.sets[peer]
	if !ok {
		return
	}
	self := protocol.Ref{Peer: peer, UID: m.view.UID}
	if mode == protocol.Everywhere && m.view.Edited() {
		e.report("edit", peer, m, true, "its content was changed by hand, and takes effect with the next revision")
	}
	unready := func(m met) bool { return e.survey.kind.Ready != nil && !e.survey.kind.Ready(m.obj) }
	if unready(m) {
		e.report("activation", peer, m, true, "it is in force and not ready")
	}
	for _, member := range set.Members {
		if member.Peer == peer || member.State != "Active" || e.survey.unread[member.Peer] != nil {
			continue
		}
		if !slices.Contains(e.survey.peers, member.Peer) {
			e.report("I11", peer, met{}, false, "member %s is not configured here", member.Peer)
			continue
		}
		there, ok := e.survey.late[e.key][member.Peer]
		switch {
		case !ok:
			e.report("I2", member.Peer, m, false, "nothing guards the name of the object that is committed in %s", peer).mendAt = peer
		case there.bad != nil:
		case there.view.Undecided() && there.view.Sibling(m.view):
			e.report("guard", member.Peer, m, true, "the claim is not bound yet to the object that is committed in %s", peer).mendAt = peer
		case mode == protocol.Everywhere && m.view.Outranks(there.view):
			e.report("move", member.Peer, m, true, "the replica has not followed the primary to %s", peer).mendAt = peer
		case !there.view.Claimed || there.view.Primary(mode) || there.view.Of(mode) != self:
			e.report("I2", member.Peer, m, false, "the object here does not name the object that is committed in %s", peer).mendAt = peer
		case mode == protocol.Everywhere && there.view.Stage != protocol.Active:
			e.report("replica", member.Peer, m, true, "the replica is %s, not yet Active", there.view.Stage).mendAt = peer
		case mode == protocol.Everywhere && there.view.Revision.Number < m.view.Revision.Number:
			e.report("replica", member.Peer, m, true, "the replica has revision %d, the primary in %s %d",
				there.view.Revision.Number, peer, m.view.Revision.Number).mendAt = peer
		case mode == protocol.Everywhere && there.view.Finalizer:
			e.report("move", member.Peer, m, true, "it was the primary and still has our finalizer").mendAt = peer
		case mode == protocol.Everywhere && unready(there):
			e.report("activation", member.Peer, m, true, "the replica is in force and not ready").mendAt = peer
		}
	}
}

// secondary judges a guard or a replica by its primary, which was read later.
func (e *examination) secondary(peer string, m met) {
	mode := protocol.Mode(e.survey.kind.Mode)
	if m.view.Undecided() {
		e.report("I6", peer, m, true, "operation %s of %s holds the name by a record in the central log", m.view.Claim.Operation, m.view.Claim.Coordinator)
		return
	}
	of := m.view.Of(mode)
	if e.survey.unread[of.Peer] != nil {
		e.overfull(peer, m)
		return
	}
	if !slices.Contains(e.survey.peers, of.Peer) {
		if e.survey.sets[peer].Gone(of.Peer) {
			e.report("I6", peer, m, false, "its primary's peer %s has left", of.Peer)
			return
		}
		e.report("I11", peer, met{}, false, "its primary is in %s, which is not configured here", of.Peer)
		return
	}
	primary, ok := e.survey.late[e.key][of.Peer]
	now := e.survey.late[e.key][peer]
	switch {
	case ok && primary.bad != nil:
	case m.view.UID != now.view.UID && m.view.Evidence(mode):
		// It was deleted or changed between the two reads.
	case e.survey.verdict(e.key, standing{peer, m}) == protocol.VerdictLost:
		e.report("lost", peer, m, false, "%s", lostText(e.survey.kind, e.key, m.view, of)).Mend = "atollctl peer comeback " + of.Peer
	case (!ok || primary.view.UID != of.UID) && now.view.UID == m.view.UID && e.waiting(now) != "":
		e.report("removal", peer, now, true, "its primary in %s is gone, and it is being deleted%s", of.Peer, e.waiting(now))
	case !ok || primary.view.UID != of.UID:
		e.report("I6", peer, m, false, "a leftover of operation %s: its primary in %s is gone", m.view.Claim.Operation, of.Peer)
	case mode == protocol.Once && primary.view.Committed() && m.view.Bound == (protocol.Ref{}) && m.view.Claim.Record == "":
		e.report("guard", peer, primary, true, "it is not bound yet to the object that is committed in %s: until it is, that object is not durable", of.Peer).mendAt = of.Peer
		e.overfull(peer, m)
	case mode == protocol.Once && (!primary.view.Claimed || primary.view.Committed()):
		e.overfull(peer, m)
	case !primary.view.Claimed:
	case m.view.Stage == protocol.Active && primary.view.Stage == protocol.Reserved:
		e.report("I7", peer, m, false, "it is Active, its primary in %s is not committed", of.Peer)
	case m.view.Stage == protocol.Active && m.view.Revision.Number > primary.view.Revision.Number:
		e.report("conflict", peer, primary, false, "it has revision %d of operation %s, ahead of its primary in %s with %d: that peer was restored from an older state; a sweep writes the later of the two contents above both",
			m.view.Revision.Number, m.view.Revision.Operation, of.Peer, primary.view.Revision.Number).mendAt = of.Peer
	case m.view.Stage == protocol.Active && m.view.Revision.Number == primary.view.Revision.Number && m.view.Revision.Operation != primary.view.Revision.Operation:
		e.report("conflict", peer, primary, false, "its revision %d is of operation %s, its primary's in %s of %s: one of the two peers was restored from an older state; a sweep writes the later of the two contents above both",
			m.view.Revision.Number, m.view.Revision.Operation, of.Peer, primary.view.Revision.Operation).mendAt = of.Peer
	case m.view.Stage == protocol.Active && m.view.Revision.Number == primary.view.Revision.Number && m.view.Revision.Digest != primary.view.Revision.Digest:
		e.report("I7", peer, met{}, false, "its digest of revision %d differs from its primary's in %s", m.view.Revision.Number, of.Peer)
	}
}

// lostText describes evidence x whose primary is missing, and the remedies.
func lostText(kind Kind, key types.NamespacedName, x protocol.Object, of protocol.Ref) string {
	return fmt.Sprintf("operation %s committed %s %s in %s (UID %s), which no longer holds it: that peer was restored from an older state, "+
		"or our finalizer was removed by hand: the name stays held until the peer has come back (atollctl peer comeback %s) or the loss is released (%s)",
		x.Claim.Operation, kind.Kind, keyString(key), of.Peer, of.UID, of.Peer, releaseOf(kind.Kind, key))
}

// releaseOf returns the command that releases the name of a lost object.
func releaseOf(kind string, key types.NamespacedName) string {
	command := fmt.Sprintf("atollctl %s release %s", strings.ToLower(kind), key.Name)
	if key.Namespace != "" {
		command += " -n " + key.Namespace
	}
	return command
}

// overfull reports a guard that carries payload. It is not called for a guard whose primary is
// pending, which may be deleted with its primary.
func (e *examination) overfull(peer string, m met) {
	if m.view.Overfull(protocol.Mode(e.survey.kind.Mode)) {
		e.report("I12", peer, m, false, "the guard carries payload, which belongs into peer %s alone", m.view.Of(protocol.Mode(e.survey.kind.Mode)).Peer)
	}
}

// examineSets compares the members' PeerSets, which may differ while a change is under way.
func (s survey) examineSets() []finding {
	e := &examination{survey: s}
	changes := s.changes()
	for _, c := range changes {
		e.report("membership", string(c.Peer), met{}, true, "%s of the peer is under way (change %s, coordinator %s): without a sign of life for one lease, any coordinator's Recover ends it (atollctl wal recover)",
			c.Kind, c.ID, or(c.Coordinator, "unknown")).Kind = peerSetKind
	}
	if len(changes) > 0 {
		return e.findings
	}
	for _, peer := range slices.Sorted(maps.Keys(s.sets)) {
		set := s.sets[peer]
		if set.Self.State != "Active" {
			continue
		}
		want := active(set)
		for _, other := range want {
			theirs, ok := s.sets[other]
			if ok && !slices.Equal(active(theirs), want) {
				e.report("I11", peer, met{}, false, "it knows the members %s, %s knows %s",
					strings.Join(want, ", "), other, strings.Join(active(theirs), ", "))
			}
		}
	}
	return e.findings
}

func active(set protocol.PeerSet) []string {
	var names []string
	for _, m := range set.Members {
		if m.State == "Active" {
			names = append(names, m.Peer)
		}
	}
	slices.Sort(names)
	return names
}
