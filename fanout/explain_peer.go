// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// The rules of judgements: invariants, and titles of sections of
// docs/fanout-specification.md.
const (
	ruleAdd      = "Add"
	ruleJudging  = "Judging a secondary"
	ruleRivals   = "Rivals that are both alive"
	ruleEndings  = "The commit and its endings"
	ruleActivate = "Activation"
	ruleMoves    = "The primary moves"
	ruleForce    = "Force-remove"
	ruleRemove   = "Remove"
	ruleGuarded  = "I2"
	ruleStays    = "I3"
	rulePerson   = "I9"
	ruleRecovery = "Recovery"
)

// explainPeer describes the object that one peer holds under a name. It is pure.
func (s survey) explainPeer(key types.NamespacedName, peer string) PeerExplanation {
	if err := s.unread[peer]; err != nil {
		return PeerExplanation{
			Peer: region.PeerName(peer), Judgement: "undecidable", Rule: ruleJudging, Err: err,
			Text: "it could not be read, so its object is not known and nothing there is touched",
			Next: "that the peer answers",
		}
	}
	for _, x := range s.secondaries(key) {
		if x.peer == peer {
			return s.explainSecondary(key, x)
		}
	}
	m, ok := s.late[key][peer]
	p := PeerExplanation{Peer: region.PeerName(peer)}
	switch {
	case !ok:
		s.explainAbsence(key, &p)
	case m.bad != nil:
		p.UID, p.Judgement, p.Rule = m.obj.GetUID(), "damaged", "claim"
		p.Text = fmt.Sprintf("its claim cannot be read, so it is not touched: %v", m.bad)
		p.Next = "that a person repairs the claim or deletes the object"
	case !m.view.Claimed:
		p.UID, p.Since = m.obj.GetUID(), m.obj.GetCreationTimestamp().UTC()
		p.Judgement, p.Rule = "unclaimed", rulePerson
		p.Text = "it was applied without a claim: it takes effect nowhere, holds the name here and is never deleted by the protocol"
		p.Next = "that a person adopts or deletes it (Adopt)"
	case !m.view.Primary(protocol.Mode(s.kind.Mode)):
		// The secondary appeared between the two reads of the survey.
		p = s.explainSecondary(key, objectAt{peer, m})
	default:
		s.explainPrimary(m, &p)
	}
	return p
}

// claimed fills in the fields that the claim determines.
func (p *PeerExplanation) claimed(m met) {
	p.UID, p.Stage, p.Role = m.obj.GetUID(), stageOf(m.view), "Secondary"
	if m.view.Claim.Primary {
		p.Role = "Primary"
	}
	p.Operation, p.Coordinator = m.view.Claim.Operation, m.view.Claim.Coordinator
	p.Since = time.UnixMicro(m.view.Claim.Start).UTC()
}

func (s survey) explainPrimary(m met, p *PeerExplanation) {
	p.claimed(m)
	switch {
	case m.view.Pending():
		p.Judgement, p.Rule = "reservation", ruleRivals
		p.Text = fmt.Sprintf("operation %s of %s holds the name and is not committed", p.Operation, p.Coordinator)
		p.Next = "its coordinator commits or deletes it; after one lease without a sign of life any coordinator may delete it (Sweep, Abort)"
	case m.view.Stage == protocol.Reserved:
		p.Judgement, p.Rule = "reservation", ruleEndings
		p.Text = "it was deleted before it was committed, and a finalizer of another controller holds it"
		p.Next = "that the finalizer is removed"
	case m.view.Requested():
		p.Judgement, p.Rule = "held", ruleRemove
		p.Text = requestText(m.view)
		p.Next = "that the reason ends, or a release (ReleaseRemoval, atollctl account release); moving its home to another peer undoes the deletion"
	case m.view.Leaving():
		p.Judgement, p.Rule = "leaving", ruleRemove
		p.Text = "its removal is committed and only rolls forward"
		p.Next = "that every peer has confirmed"
		if m.view.Foreign {
			p.Next = "that the finalizers of others are removed, and then that every peer has confirmed"
		}
	default:
		p.Judgement, p.Rule = "primary", ruleStays
		p.Text = "it is committed and decides for all peers"
		p.Next = "a removal"
	}
}

func (s survey) explainSecondary(key types.NamespacedName, x objectAt) PeerExplanation {
	p := PeerExplanation{Peer: region.PeerName(x.peer), Rule: ruleJudging}
	p.claimed(x.met)
	of := x.view.Of(protocol.Mode(s.kind.Mode))
	if s.explainMove(key, x, of, &p) {
		return p
	}
	switch s.verdict(key, x) {
	case protocol.VerdictDead:
		p.Judgement = "leftover"
		p.Text = fmt.Sprintf("its primary in %s, UID %s, is gone: it is dead for ever and holds nothing", of.Peer, of.UID)
		p.Next = "any sweep, or the next operation of the name, deletes it"
	case protocol.VerdictLost:
		p.Judgement = "lost"
		p.Text = lostText(s.kind, key, x.view, of)
		p.Next = fmt.Sprintf("that %s has come back, or a release (ReleaseRemoval)", of.Peer)
	case protocol.VerdictPending:
		p.Judgement = "reservation"
		p.Text = fmt.Sprintf("its primary in %s may yet be committed", of.Peer)
		p.Next = "the commit or the deletion of its primary"
	case protocol.VerdictFenced:
		p.Judgement = "reservation"
		p.Text = fmt.Sprintf("its primary in %s is being deleted", of.Peer)
		p.Next = "it is dead once its primary is gone"
	case protocol.VerdictLeaving:
		p.Judgement, p.Rule = "leaving", ruleRemove
		p.Text = fmt.Sprintf("the removal of its primary in %s is committed: it is to be deleted", of.Peer)
		p.Next = "the removal, or any sweep, deletes it"
	case protocol.VerdictMoved:
		p.Judgement = "replica"
		p.Text = fmt.Sprintf("its primary has moved on from %s", of.Peer)
		p.Next = "any sweep brings it up to its new primary"
	case protocol.VerdictOwned:
		s.explainOwned(key, x, of, &p)
	default:
		p.Judgement = "undecidable"
		p.Text = fmt.Sprintf("its primary's peer %s cannot be read, so it may be alive and is not touched", of.Peer)
		p.Next = fmt.Sprintf("that %s answers, or has left the ring", of.Peer)
	}
	return p
}

// explainOwned describes a secondary whose primary is committed.
func (s survey) explainOwned(key types.NamespacedName, x objectAt, of protocol.Ref, p *PeerExplanation) {
	y := s.late[key][of.Peer]
	if s.kind.Mode == Once {
		p.Judgement, p.Rule = "guard", ruleGuarded
		p.Text = fmt.Sprintf("it guards the name for the object that is committed in %s", of.Peer)
		p.Next = "the removal of the object"
		return
	}
	p.Judgement, p.Rule = "replica", ruleActivate
	now := x
	if late, ok := s.late[key][x.peer]; ok && late.bad == nil && late.view.UID == x.view.UID {
		now.met = late
	}
	p.Stage = stageOf(now.view)
	switch {
	case now.view.Stage != protocol.Active:
		p.Text = fmt.Sprintf("its primary in %s is committed, and it is not in effect yet", of.Peer)
		p.Next = "the operation, recovery or any sweep brings it into force"
	case now.view.Revision.Number < y.view.Revision.Number:
		p.Text = fmt.Sprintf("it has revision %d, its primary in %s has %d", now.view.Revision.Number, of.Peer, y.view.Revision.Number)
		p.Next = "the operation, recovery or any sweep updates it"
	default:
		p.Text = fmt.Sprintf("it is in effect with revision %d, as its primary in %s", now.view.Revision.Number, of.Peer)
		p.Next = "an update or the removal of its primary"
	}
}

// explainAbsence explains why a peer has no object of the name.
func (s survey) explainAbsence(key types.NamespacedName, p *PeerExplanation) {
	mode := protocol.Mode(s.kind.Mode)
	p.Judgement, p.Rule = "absent", ruleGuarded
	p.Text, p.Next = "nothing of the name is here", "an add"
	for peer, m := range s.late[key] {
		if m.bad != nil || !m.view.Claimed || !m.view.Primary(mode) {
			continue
		}
		switch {
		case m.view.InEffect() && slices.Contains(active(s.sets[peer]), string(p.Peer)):
			p.Judgement = "missing"
			p.Text = fmt.Sprintf("the object is committed in %s, and nothing here names it", peer)
			p.Next = "any sweep puts it here (Audit with repair)"
		case m.view.Leaving():
			p.Rule = ruleRemove
			p.Text, p.Next = "the removal has cleared this peer", "an add once the removal is done"
		case m.view.Pending():
			p.Rule = ruleAdd
			p.Text = fmt.Sprintf("operation %s, which has its reservation in %s, has not come here yet", m.view.Claim.Operation, peer)
			p.Next = "that operation"
		}
	}
}
