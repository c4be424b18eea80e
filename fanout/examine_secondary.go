// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
)

// secondary examines a guard or replica m by the state of its primary, which the survey read later.
func (e *examination) secondary(peer string, m met) {
	of := m.view.Of(e.mode)
	switch {
	case m.view.Undecided():
		e.undecided(peer, m)
	case e.survey.unread[of.Peer] != nil:
		e.overfull(peer, m)
	case slices.Contains(e.survey.peers, of.Peer):
		e.secondaryOf(peer, m)
	case e.survey.sets[peer].Gone(of.Peer):
		e.report("I6", peer, m, false, "its primary's peer %s has left", of.Peer)
	default:
		e.report("I11", peer, met{}, false, "its primary is in %s, which is not configured here", of.Peer)
	}
}

// secondaryOf is secondary for a guard or replica whose primary's peer was read.
func (e *examination) secondaryOf(peer string, m met) {
	of := m.view.Of(e.mode)
	primary, ok := e.survey.late[e.key][of.Peer]
	now := e.survey.late[e.key][peer]
	gone := !ok || primary.view.UID != of.UID
	switch {
	case ok && primary.bad != nil:
	case m.view.UID != now.view.UID && m.view.Evidence(e.mode):
		// The secondary was deleted or replaced between the two reads.
	case e.survey.verdict(e.key, objectAt{peer, m}) == protocol.VerdictLost:
		e.report("lost", peer, m, false, "%s", lostText(e.survey.kind, e.key, m.view, of)).Mend = "atollctl peer comeback " + of.Peer
	case gone && now.view.UID == m.view.UID && e.waiting(now) != "":
		e.report("removal", peer, now, true, "its primary in %s is gone, and it is being deleted%s", of.Peer, e.waiting(now))
	case gone:
		e.report("I6", peer, m, false, "a leftover of operation %s: its primary in %s is gone", m.view.Claim.Operation, of.Peer)
	case e.mode == protocol.Once:
		e.guard(peer, m, primary)
	case primary.view.Claimed:
		e.replica(peer, m, primary)
	}
}

func (e *examination) guard(peer string, m, primary met) {
	of := m.view.Of(e.mode)
	committed := primary.view.Committed()
	if committed && m.view.Bound == (protocol.Ref{}) && m.view.Claim.Record == "" {
		e.report("guard", peer, primary, true, "it is not bound yet to the object that is committed in %s: until it is, that object is not durable", of.Peer).mendAt = of.Peer
	}
	if committed || !primary.view.Claimed {
		e.overfull(peer, m)
		return
	}
	e.replica(peer, m, primary)
}

// replica adds a finding if an Active object contradicts its primary.
func (e *examination) replica(peer string, m, primary met) {
	of, own, theirs := m.view.Of(e.mode), m.view.Revision, primary.view.Revision
	conflict := func(format string, args ...any) {
		e.report("conflict", peer, primary, false, format, args...).mendAt = of.Peer
	}
	switch {
	case m.view.Stage != protocol.Active:
	case primary.view.Stage == protocol.Reserved:
		e.report("I7", peer, m, false, "it is Active, its primary in %s is not committed", of.Peer)
	case own.Number > theirs.Number:
		conflict("it has revision %d of operation %s, ahead of its primary in %s with %d: that peer was restored from an older state; a sweep writes the later of the two contents above both",
			own.Number, own.Operation, of.Peer, theirs.Number)
	case own.Number < theirs.Number:
	case own.Operation != theirs.Operation:
		conflict("its revision %d is of operation %s, its primary's in %s of %s: one of the two peers was restored from an older state; a sweep writes the later of the two contents above both",
			own.Number, own.Operation, of.Peer, theirs.Operation)
	case own.Digest != theirs.Digest:
		e.report("I7", peer, met{}, false, "its digest of revision %d differs from its primary's in %s", own.Number, of.Peer)
	}
}

// lostText describes a secondary x that proves a commit although its primary is missing, and
// names the remedies.
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

// overfull adds a finding if a guard carries payload. Callers skip a guard whose primary was read
// and is pending, because that guard may be deleted together with its primary.
func (e *examination) overfull(peer string, m met) {
	if m.view.Overfull(e.mode) {
		e.report("I12", peer, m, false, "the guard carries payload, which belongs into peer %s alone", m.view.Of(e.mode).Peer)
	}
}
