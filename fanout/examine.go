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
	mend      met    // the object that a sweep has to repair; empty if a sweep cannot repair the fault
	mendAt    string
}

// examine returns the faults that a survey shows, and the work under way. It is pure. A fault may
// have been repaired since the survey, so a caller reads the object again before it acts on a
// finding.
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
	mode     protocol.Mode
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
	e := &examination{survey: s, key: key, mode: protocol.Mode(s.kind.Mode)}
	var owners []string
	for _, peer := range slices.Sorted(maps.Keys(s.late[key])) {
		if e.present(peer, s.late[key][peer]) {
			owners = append(owners, peer)
		}
	}
	e.contested(owners)
	e.applied(owners)
	for _, peer := range slices.Sorted(maps.Keys(s.early[key])) {
		if m := s.early[key][peer]; m.bad == nil && m.view.Claimed && !m.view.Primary(e.mode) {
			e.secondary(peer, m)
		}
	}
	return e.findings
}

// present examines the object m in peer, and reports whether m owns the name.
func (e *examination) present(peer string, m met) bool {
	switch {
	case m.bad != nil:
		e.report("claim", peer, met{}, false, "the claim cannot be read: %v", m.bad)
	case m.view.Claimed && e.mode == protocol.Everywhere && m.view.Home.Yielded && !m.view.Primary(e.mode):
		e.report("move", peer, m, true, "the primary moves from here to %s", m.view.Home.Peer)
	case !m.view.Claimed, !m.view.Primary(e.mode):
	case m.view.Committed():
		e.owner(peer, m)
		return true
	case m.view.Requested():
		e.report("held", peer, m, true, "%s", requestText(m.view))
		e.owner(peer, m)
		return true
	case m.view.Leaving():
		e.report("removal", peer, m, true, "its removal is committed and under way%s", e.waiting(m))
		return true
	case m.view.Undecided():
		e.undecided(peer, m)
	case m.view.Pending():
		e.report("I6", peer, m, true, "operation %s of %s holds the name and is not committed", m.view.Claim.Operation, m.view.Claim.Coordinator)
	}
	return false
}

func (e *examination) undecided(peer string, m met) {
	e.report("I6", peer, m, true, "operation %s of %s holds the name by a record in the central log", m.view.Claim.Operation, m.view.Claim.Coordinator)
}

// contested adds a finding if the name has several owners, and one for each object without a
// claim that has the name of a committed object.
func (e *examination) contested(owners []string) {
	if len(owners) > 1 {
		name := "I1"
		if e.mode == protocol.Everywhere {
			name = "I10"
		}
		e.report(name, owners[0], met{}, false, "peers %s all own the name", strings.Join(owners, ", "))
	}
	late := e.survey.late[e.key]
	if len(owners) == 0 || !late[owners[0]].view.InEffect() {
		return
	}
	for _, peer := range slices.Sorted(maps.Keys(late)) {
		if m := late[peer]; m.bad == nil && !m.view.Claimed {
			e.report("I1", peer, met{}, false, "an object without a claim has the name of the committed object in %s: delete it by hand", owners[0]).unclaimed = true
		}
	}
}

// waiting returns a text with the finalizers of other controllers that block the deletion of m's
// object. It returns "" if the object is not being deleted or has no such finalizer.
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

// owner examines the committed object m in peer, and the objects in the other members that belong
// to m.
func (e *examination) owner(peer string, m met) {
	set, ok := e.survey.sets[peer]
	if !ok {
		return
	}
	if e.mode == protocol.Everywhere && m.view.Edited() {
		e.report("edit", peer, m, true, "its content was changed by hand, and takes effect with the next revision")
	}
	if e.unready(m) {
		e.report("activation", peer, m, true, "it is in effect and not ready")
	}
	for _, member := range set.Members {
		if member.Peer == peer || member.State != "Active" || e.survey.unread[member.Peer] != nil {
			continue
		}
		if !slices.Contains(e.survey.peers, member.Peer) {
			e.report("I11", peer, met{}, false, "member %s is not configured here", member.Peer)
			continue
		}
		e.belonging(member.Peer, peer, m)
	}
}

func (e *examination) unready(m met) bool {
	return e.survey.kind.Ready != nil && !e.survey.kind.Ready(m.obj)
}

// belonging examines the guard or replica in member that belongs to the primary m, which is
// committed in peer. A sweep of m repairs each of its findings.
func (e *examination) belonging(member, peer string, m met) {
	self := protocol.Ref{Peer: peer, UID: m.view.UID}
	mend := func(invariant string, underWay bool, format string, args ...any) {
		e.report(invariant, member, m, underWay, format, args...).mendAt = peer
	}
	there, ok := e.survey.late[e.key][member]
	switch {
	case !ok:
		mend("I2", false, "nothing guards the name of the object that is committed in %s", peer)
	case there.bad != nil:
	case there.view.Undecided() && there.view.Sibling(m.view):
		mend("guard", true, "the claim is not bound yet to the object that is committed in %s", peer)
	case e.mode == protocol.Everywhere && m.view.Outranks(there.view):
		mend("move", true, "the replica has not followed the primary to %s", peer)
	case !there.view.Claimed || there.view.Primary(e.mode) || there.view.Of(e.mode) != self:
		mend("I2", false, "the object here does not name the object that is committed in %s", peer)
	case e.mode != protocol.Everywhere:
	case there.view.Stage != protocol.Active:
		mend("replica", true, "the replica is %s, not yet Active", there.view.Stage)
	case there.view.Revision.Number < m.view.Revision.Number:
		mend("replica", true, "the replica has revision %d, the primary in %s %d",
			there.view.Revision.Number, peer, m.view.Revision.Number)
	case there.view.Finalizer:
		mend("move", true, "it was the primary and still has our finalizer")
	case e.unready(there):
		mend("activation", true, "the replica is in effect and not ready")
	}
}
