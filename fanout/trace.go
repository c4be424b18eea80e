// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// Trace is an open operation as the objects in the peers show it. The operation may belong to
// another coordinator, or to a log that is lost.
type Trace struct {
	// Operation is the operation's ID. It is empty for an object that a person deleted, and for
	// a move, whose ID no peer stores.
	Operation string
	// Action is "add", "adopt", "update", "move" or "remove".
	Action string
	// Coordinator is the coordinator that began the operation. It is empty if no peer names a
	// coordinator, as for an update or a move.
	Coordinator string
	Kind        schema.GroupKind
	Key         types.NamespacedName
	// Primary is the peer that holds, or held, the primary.
	Primary region.PeerName
	// State is Reserving; Committed; Ended for the leftovers of an operation whose primary is gone; or
	// InDoubt if the primary's peer does not answer.
	State State
	// Since is when the operation began; for an update or a move, when the object was added.
	Since time.Time
	// Peers are the peers in which work is left.
	Peers []region.PeerName
}

// Traces lists the open operations that the peers show, ordered by kind and name, including those
// that show signs of life. The error is a *region.PartialError of the peers that could not be
// read; Traces then also returns the operations that the other peers show. Traces writes nothing
// and blocks until all peers have answered or timed out.
func (c *Coordinator) Traces(ctx context.Context) ([]Trace, error) {
	peers, err := c.clusters.peers(ctx)
	if err != nil {
		return nil, err
	}
	found, unread, err := c.inspector.traces(ctx)
	if err != nil {
		return nil, err
	}
	var all []Trace
	for _, t := range found {
		all = append(all, t.Trace)
	}
	return all, readOf("list operations", peers, unread).Err()
}

func (n *inspector) traces(ctx context.Context) (found []trace, unread map[string]error, err error) {
	peers, err := n.clusters.peers(ctx)
	if err != nil {
		return nil, nil, err
	}
	unread = map[string]error{}
	for _, kind := range n.opts.Kinds {
		s := n.surveyor.survey(ctx, kind, peers)
		unreadAll(unread, s.unread)
		for _, key := range s.keys() {
			found = append(found, s.trace(key)...)
		}
	}
	return found, unread, nil
}

// trace is a Trace with the objects that a sweep repairs to end it, the primary first.
type trace struct {
	Trace
	kind  Kind
	sweep []objectAt
}

// objectAt is an object in a peer.
type objectAt struct {
	peer string
	met
}

// trace returns the open operations of one name. It is pure.
func (s survey) trace(key types.NamespacedName) []trace {
	mode := protocol.Mode(s.kind.Mode)
	var traces []trace
	home := false
	for _, peer := range slices.Sorted(maps.Keys(s.late[key])) {
		m := s.late[key][peer]
		if m.bad != nil || !m.view.Claimed || !m.view.Primary(mode) {
			continue
		}
		home = true
		if t, ok := s.traceOf(key, peer, m); ok {
			traces = append(traces, t)
		}
	}
	if from, m, ok := s.yielded(key); ok && !home {
		traces = append(traces, s.moving(key, from, m))
	}
	return append(traces, s.leftovers(key)...)
}

// moving returns the trace of an unfinished move, in which the object m in the peer from has
// yielded (is the primary no longer).
func (s survey) moving(key types.NamespacedName, from string, m met) trace {
	return trace{kind: s.kind, sweep: []objectAt{{from, m}}, Trace: Trace{
		Action:  string(protocol.Move),
		Kind:    s.kind.GroupKind(),
		Key:     key,
		Primary: region.PeerName(from),
		State:   Committed,
		Since:   time.UnixMicro(m.view.Claim.Start).UTC(),
		Peers:   []region.PeerName{region.PeerName(m.view.Home.Peer)},
	}}
}

// traceOf returns the trace of the open operation of primary m; false if none is open.
func (s survey) traceOf(key types.NamespacedName, peer string, m met) (trace, bool) {
	t := trace{kind: s.kind, sweep: []objectAt{{peer, m}}, Trace: Trace{
		Operation:   m.view.Claim.Operation,
		Action:      string(m.view.Claim.Begins()),
		Coordinator: m.view.Claim.Coordinator,
		Kind:        s.kind.GroupKind(),
		Key:         key,
		Primary:     region.PeerName(peer),
		State:       Reserving,
		Since:       time.UnixMicro(m.view.Claim.Start).UTC(),
	}}
	switch {
	case m.view.InEffect():
		t.State = Committed
		if r := m.view.Revision; r.Number > 1 {
			t.Operation, t.Action, t.Coordinator = r.Operation, string(protocol.Update), ""
		}
		for _, f := range s.examineKey(key) {
			if f.Invariant != "held" && f.mendAt == peer && f.mend.obj != nil && f.mend.view.UID == m.view.UID {
				t.Peers = append(t.Peers, f.Peer)
			}
		}
		slices.Sort(t.Peers)
		t.Peers = slices.Compact(t.Peers)
		return t, len(t.Peers) > 0
	case m.view.Leaving():
		t.State, t.Action = Committed, string(protocol.Remove)
		t.Operation, t.Coordinator, t.Since = "", "", m.deleted()
		if state, err := s.kind.Claim.read(m.obj); err == nil && state.Removal != nil {
			t.Operation, t.Coordinator = state.Removal.Operation, state.Removal.Coordinator
			t.Since = state.Removal.Start.UTC()
		}
	}
	t.Peers = append(t.Peers, region.PeerName(peer))
	for _, x := range s.secondaries(key) {
		if x.view.Of(protocol.Mode(s.kind.Mode)) == (protocol.Ref{Peer: peer, UID: m.view.UID}) {
			t.Peers = append(t.Peers, region.PeerName(x.peer))
			if t.State == Reserving {
				t.sweep = append(t.sweep, x)
			}
		}
	}
	return t, true
}

// leftovers returns the traces of operations that have secondaries and no primary. A trace is Ended if its
// secondaries are dead, and InDoubt if this coordinator cannot judge them.
func (s survey) leftovers(key types.NamespacedName) []trace {
	var traces []trace
	for _, x := range s.secondaries(key) {
		state := Ended
		switch s.verdict(key, x) {
		case protocol.VerdictDead:
		case protocol.VerdictUndecidable:
			state = InDoubt
		default:
			continue
		}
		claim := x.view.Claim
		at := slices.IndexFunc(traces, func(t trace) bool { return t.Operation == claim.Operation && t.State == state })
		if at < 0 {
			at = len(traces)
			traces = append(traces, trace{kind: s.kind, Trace: Trace{
				Operation:   claim.Operation,
				Action:      string(claim.Begins()),
				Coordinator: claim.Coordinator,
				Kind:        s.kind.GroupKind(),
				Key:         key,
				Primary:     region.PeerName(x.view.Of(protocol.Mode(s.kind.Mode)).Peer),
				State:       state,
				Since:       time.UnixMicro(claim.Start).UTC(),
			}})
		}
		traces[at].Peers = append(traces[at].Peers, region.PeerName(x.peer))
		traces[at].sweep = append(traces[at].sweep, x)
	}
	return traces
}

// secondaries returns the guards, replicas and reservations of a name, ordered by peer, as the first
// of the two reads of each peer found them (survey.early).
func (s survey) secondaries(key types.NamespacedName) []objectAt {
	var all []objectAt
	for _, peer := range slices.Sorted(maps.Keys(s.early[key])) {
		m := s.early[key][peer]
		if m.bad == nil && m.view.Claimed && !m.view.Primary(protocol.Mode(s.kind.Mode)) {
			all = append(all, objectAt{peer, m})
		}
	}
	return all
}

// verdict judges a secondary of the early read by its primary in the late read, as the machine
// does.
func (s survey) verdict(key types.NamespacedName, x objectAt) protocol.Verdict {
	mode := protocol.Mode(s.kind.Mode)
	of := x.view.Of(mode).Peer
	primary := protocol.Reply{Class: protocol.Applied, Code: protocol.NotFound}
	switch y, ok := s.late[key][of]; {
	case s.unread[of] != nil:
		primary.Code = protocol.Unavailable
	case !slices.Contains(s.peers, of):
		primary.Code = protocol.NoSuchPeer
	case ok && y.bad != nil:
		primary.Code = protocol.Denied
	case ok:
		primary.Code, primary.Object = protocol.OK, y.view
	}
	set := protocol.Reply{Code: protocol.Unavailable}
	if known, ok := s.sets[x.peer]; ok {
		set.Code, set.PeerSet = protocol.OK, known
	}
	v := protocol.Judge(mode, x.view, primary, set)
	if v == protocol.VerdictLost && s.refuted(key, x, of) {
		return protocol.VerdictDead
	}
	return v
}

// refuted reports whether another Active member contradicts x. The secondary x proves a commit,
// although its primary is missing in the peer that the parameter of names. A member contradicts x
// if it holds no object of x's operation. Then x exists only because x's own peer was restored.
// protocol.Machine decides by the same rule.
func (s survey) refuted(key types.NamespacedName, x objectAt, of string) bool {
	return slices.ContainsFunc(s.peers, func(p string) bool {
		set, there := s.sets[p], s.late[key][p]
		return p != x.peer && p != of && set.Self.State == string(v1alpha1.PeerActive) && set.Lists(x.peer) && set.Lists(of) &&
			there.bad == nil && (there.obj == nil || there.view.Claim.Operation != x.view.Claim.Operation)
	})
}

// deleted returns the time at which the object's deletion was requested.
func (m met) deleted() time.Time {
	if at := m.obj.GetDeletionTimestamp(); at != nil {
		return at.UTC()
	}
	return time.Time{}
}

// String describes the operation in one line.
func (t Trace) String() string {
	name := fmt.Sprintf("%s of %s %s", t.Action, t.Kind.Kind, keyString(t.Key))
	if t.Operation != "" {
		name = fmt.Sprintf("operation %s, %s", t.Operation, name)
	}
	if t.Coordinator != "" {
		name += ", by " + t.Coordinator
	}
	return fmt.Sprintf("%s, is %s with its primary in %s", name, t.State, t.Primary)
}
