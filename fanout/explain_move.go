// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// namesNextHome returns true if m names another object as its home, and that object may not be the
// primary yet. Either m was the primary, has yielded to that object in a move, and still has the
// protocol's finalizer, or m is a replica whose primary was lost with its peer.
func (s survey) namesNextHome(m met) bool {
	return m.bad == nil && m.view.Claimed && s.kind.Mode == Everywhere && m.view.Home.Yielded &&
		!m.view.Primary(protocol.Mode(s.kind.Mode))
}

func (s survey) gaveUp(m met) bool { return s.namesNextHome(m) && m.view.Finalizer }

// yielded returns the former primary of a name: the object that has yielded and still has the
// protocol's finalizer. If several objects have yielded, it returns the one of the latest move
// (with the highest Home.Term).
func (s survey) yielded(key types.NamespacedName) (peer string, m met, ok bool) {
	for _, p := range slices.Sorted(maps.Keys(s.late[key])) {
		if y := s.late[key][p]; s.gaveUp(y) && (!ok || y.view.Home.Term > m.view.Home.Term) {
			peer, m, ok = p, y, true
		}
	}
	return peer, m, ok
}

// explainMove describes a secondary that was the primary, that becomes the primary, or whose
// primary was lost with its peer. It returns false for any other secondary.
func (s survey) explainMove(key types.NamespacedName, x objectAt, of protocol.Ref, p *PeerExplanation) bool {
	now := x
	if late, ok := s.late[key][x.peer]; ok && late.view.UID == x.view.UID {
		now.met = late
	}
	if s.gaveUp(now.met) {
		p.Judgement, p.Rule = "yielded", ruleMoves
		p.Text = fmt.Sprintf("it has yielded to the object in %s, UID %s, which becomes the primary, and takes no update and no removal", of.Peer, of.UID)
		p.Next = "the move, recovery or any sweep ends it, or takes it back if that object is gone"
		return true
	}
	if s.namesNextHome(now.met) {
		p.Judgement, p.Rule = "replica", ruleForce
		p.Text = fmt.Sprintf("its primary was lost with its peer, and the object in %s, UID %s, becomes the next one", of.Peer, of.UID)
		p.Next = "the force-remove of the lost peer ends it"
		return true
	}
	from, y, ok := s.yielded(key)
	if !ok || y.view.Home.Ref != (protocol.Ref{Peer: x.peer, UID: x.view.UID}) || now.view.Home.Term >= y.view.Home.Term {
		return false
	}
	p.Judgement, p.Rule = "elect", ruleMoves
	p.Text = fmt.Sprintf("the object in %s has yielded to it, and it is not the primary yet", from)
	p.Next = "the move, recovery or any sweep makes it the primary"
	return true
}

// explainMoving describes an object whose primary m has yielded, while no peer that answers
// holds the next primary.
func (s survey) explainMoving(e *Explanation, from string, m met) {
	to := m.view.Home.Peer
	e.State = Committed
	e.Action, e.Coordinator, e.Since = string(m.view.Claim.Begins()), m.view.Claim.Coordinator, time.UnixMicro(m.view.Claim.Start).UTC()
	if e.Operation == "" || e.Operation != m.view.Claim.Operation {
		e.Coordinator, e.Since = "", time.Time{}
		if e.Action = string(protocol.Move); e.Operation != "" {
			e.Action = string(protocol.Update)
		}
	}
	e.Text = fmt.Sprintf("it is committed, and its primary moves: the object in %s has yielded to %s, where it is not the primary yet", from, to)
	if s.unread[to] != nil {
		e.Text += ", as far as is known: that peer cannot be read"
	}
	e.Next = "it only rolls forward: Recover or any sweep ends the move"
}

// changes returns the changes of the membership that a PeerSet has in spec.change.
func (s survey) changes() []Changing {
	var all []Changing
	for _, peer := range slices.Sorted(maps.Keys(s.sets)) {
		slot := s.sets[peer].Change
		if slot.ID == "" {
			continue
		}
		at := slices.IndexFunc(all, func(c Changing) bool { return c.ID == slot.ID })
		if at < 0 {
			at = len(all)
			all = append(all, Changing{ID: slot.ID, Kind: ChangeKind(slot.Kind), Peer: region.PeerName(slot.Peer), Coordinator: slot.Coordinator})
		}
		all[at].In = append(all[at].In, region.PeerName(peer))
	}
	return all
}
