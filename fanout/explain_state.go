// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
)

// explain judges one name and describes the given operation. If operation is empty, it describes
// the latest operation that the primary of the name shows. It is pure.
func (s survey) explain(key types.NamespacedName, peers []string, operation string) *Explanation {
	e := &Explanation{Operation: operation, Kind: s.kind.GroupKind(), Key: key, Changes: s.changes()}
	for _, peer := range peers {
		p := s.explainPeer(key, peer)
		p.names = operation != "" && (s.early[key][peer].of(operation) || s.late[key][peer].of(operation))
		e.Peers = append(e.Peers, p)
	}
	for _, peer := range slices.Sorted(maps.Keys(s.late[key])) {
		m := s.late[key][peer]
		if m.bad != nil || !m.view.Claimed || !m.view.Primary(protocol.Mode(s.kind.Mode)) {
			continue
		}
		if operation == "" || m.names(operation) {
			s.explainBy(e, key, peer, m)
			return e
		}
	}
	if from, m, ok := s.yielded(key); ok && (operation == "" || m.names(operation)) {
		s.explainMoving(e, from, m)
		return e
	}
	s.explainWithout(e, key)
	return e
}

// explainBy describes the operation e.Operation from the primary m in peer, which names that
// operation. If e.Operation is empty, explainBy describes the latest operation that m shows.
func (s survey) explainBy(e *Explanation, key types.NamespacedName, peer string, m met) {
	v := m.view
	e.Action, e.Coordinator, e.Since = string(v.Claim.Begins()), v.Claim.Coordinator, time.UnixMicro(v.Claim.Start).UTC()
	t, open := s.traceOf(key, peer, m)
	behind := make([]string, len(t.Peers))
	for i, p := range t.Peers {
		behind[i] = string(p)
	}
	switch {
	case v.Pending():
		e.State = Reserving
		e.Text = fmt.Sprintf("it holds the name with its reservation in %s, and is not committed", peer)
		e.Next = "its coordinator commits or deletes it; after one lease without a sign of life any coordinator may delete it (atollctl operation abort)"
		return
	case v.Stage == protocol.Reserved:
		e.State = Aborted
		e.Text = fmt.Sprintf("its reservation in %s was deleted before it was committed", peer)
		e.Next = "a sweep deletes the rest once the finalizer of another controller is removed"
		return
	case v.Leaving() && (e.Operation == "" || v.Removal == e.Operation):
		e.State, e.Action, e.Coordinator, e.Since = Committed, t.Action, t.Coordinator, t.Since
		e.Text = fmt.Sprintf("the removal of the object in %s is committed, and not finished in %s", peer, strings.Join(behind, ", "))
		e.Next = "it only rolls forward: Recover or any sweep ends it (atollctl operation resume)"
		return
	case v.Leaving():
		e.State = Done
		e.Text = fmt.Sprintf("it was committed in %s, and is being removed by %s", peer, orDefault(t.Operation, "a deletion by hand"))
		e.Next = "nothing: the removal only rolls forward"
		return
	}
	e.State, e.Text = Done, fmt.Sprintf("it is committed in %s and confirmed by every peer that answers", peer)
	e.Next = "an update or a removal"
	if r := v.Revision; r.Number > 1 && (e.Operation == "" || e.Operation != v.Claim.Operation) {
		e.Action, e.Coordinator, e.Since = string(protocol.Update), "", time.Time{}
		if e.Operation != "" && r.Operation != e.Operation {
			e.Text = fmt.Sprintf("it was committed in %s, and overtaken: the object is at revision %d by operation %s", peer, r.Number, r.Operation)
			return
		}
	}
	if open {
		e.State, e.Text = Committed, fmt.Sprintf("it is committed in %s, and not confirmed in %s", peer, strings.Join(behind, ", "))
		e.Next = "it only rolls forward: Recover or any sweep brings the rest along (atollctl operation resume)"
	}
}

// explainWithout describes an operation, or a name, of which no peer that was read has the primary.
func (s survey) explainWithout(e *Explanation, key types.NamespacedName) {
	unread := slices.Sorted(maps.Keys(s.unread))
	var left []string
	for _, x := range s.secondaries(key) {
		if e.Operation != "" && x.view.Claim.Operation != e.Operation {
			continue
		}
		left = append(left, x.peer)
		e.Action, e.Coordinator = string(x.view.Claim.Begins()), x.view.Claim.Coordinator
		e.Since = time.UnixMicro(x.view.Claim.Start).UTC()
	}
	switch {
	case len(unread) > 0:
		e.State = InDoubt
		e.Text = fmt.Sprintf("no peer that answers has its primary, and %s cannot be read", strings.Join(unread, ", "))
		e.Next = fmt.Sprintf("that %s answers", strings.Join(unread, ", "))
	case len(left) > 0:
		e.State = Ended
		e.Text = fmt.Sprintf("its primary is gone; its objects in %s are dead", strings.Join(left, ", "))
		e.Next = "any sweep deletes it, or the next operation of the name"
	case e.Operation == "":
		e.Text, e.Next = "no operation has the name", "an add"
	default:
		e.Text, e.Next = "nothing of it is in any peer", "nothing"
	}
}

// orDefault returns s, or fallback if s is empty.
func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
