// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// driven runs machine m against s. Before each command it calls meanwhile, which may change the
// store.
func driven(t *testing.T, s *store, m *Machine, meanwhile func(Command)) {
	t.Helper()
	for cmds, n := m.Start(), 0; len(cmds) > 0; n++ {
		require.Less(t, n, 200, "it finds no end")
		c := cmds[0]
		meanwhile(c)
		require.False(t, c.Verb == Activate && c.Object.Stage == Reserved, "a reservation is activated in %s", c.Peer)
		reply, broken := s.apply(m.Op.Mode, c)
		require.Empty(t, broken)
		reply.Strand, reply.Seq = c.Strand, c.Seq
		cmds = append(cmds[1:], m.Handle(reply)...)
	}
	require.True(t, m.Over())
}

// TestACoverThatMendsAHomeBringsItsReplicas runs a Cover (the operation that creates the missing
// replicas of a home) on a restored home that has a lower revision than its replica. Meanwhile a
// sweep, which read the replica before the restore, deletes the replica, and the Cover must create
// it again. The PeerSet of the rejoining peer lists only the other members.
func TestACoverThatMendsAHomeBringsItsReplicas(t *testing.T) {
	w := newWorld(&config{mode: Everywhere, peers: 2, committed: "p"})
	cells := w.store.cells
	home, ahead, set := *cells[0].obj, *cells[1].obj, *cells[0].set
	ahead.Revision, ahead.Payload, ahead.Digest = Revision{Number: 2, Operation: "t", Digest: digestOf("q")}, "q", digestOf("q")
	set.Self.State, set.Members = peerJoining, []Member{cells[1].set.Self}
	cells[0].set, cells[1].obj = &set, &ahead
	m := New(Operation{Action: Cover, Mode: Everywhere, Peers: []string{"a", "b"}, Target: "a", Met: home, Into: []string{"b"}, Doubted: "a", Lease: 2})
	driven(t, &w.store, m, func(c Command) {
		if c.Verb == Put && c.Peer == "a" {
			cells[1].obj = nil
		}
	})
	require.EqualValues(t, 3, cells[0].obj.Revision.Number)
	require.NotNil(t, cells[1].obj, "the home has no replica")
	require.Equal(t, cells[0].obj.Revision, cells[1].obj.Revision)
}

// TestAnEditOfAHomeThatIsAReservationAgain sweeps a home that a person edited, while the home's
// peer is restored to a state from before the home's commit. The sweep does not write the
// reservation, and reports the peer as unconfirmed.
func TestAnEditOfAHomeThatIsAReservationAgain(t *testing.T) {
	w := newWorld(&config{mode: Everywhere, peers: 2, committed: "p"})
	cells := w.store.cells
	edited, before := *cells[0].obj, *cells[0].obj
	edited.Payload, edited.Digest = "e", digestOf("e")
	before.Stage, before.Finalizer, before.History, before.RV = Reserved, false, nil, "r0"
	cells[0].obj = &edited
	m := New(Operation{Action: Sweep, Mode: Everywhere, Peers: []string{"a", "b"}, Target: "a", Met: edited, Lease: 2})
	driven(t, &w.store, m, func(c Command) {
		if c.Verb == Put && c.Peer == "a" {
			cells[0].obj = &before
		}
	})
	require.Equal(t, []string{"a"}, m.Result.Pending)
	require.Equal(t, reservedAgain, m.Result.Problem)
	require.Equal(t, Reserved, cells[0].obj.Stage)
}

// TestARemovalThatFoundNothingReadsOnceMore recovers a removal that finds its object gone. Before
// the removal deletes the guards, the object's peer is restored to a state in which the object was
// in effect. The guard stays, and so does the removal's entry in the log.
func TestARemovalThatFoundNothingReadsOnceMore(t *testing.T) {
	w := newWorld(&config{peers: 2, committed: "p"})
	cells := w.store.cells
	primary := cells[0].obj
	cells[0].obj = nil
	op := Operation{ID: "r", Action: Remove, Peers: []string{"a", "b"}, Lease: 2}
	m := Recover(op, Record{Primary: Ref{Peer: "a", UID: primary.UID}, Committing: true})
	driven(t, &w.store, m, func(c Command) {
		if c.Verb == Read && c.Peer == "b" {
			cells[0].obj = primary
		}
	})
	require.NotNil(t, cells[1].obj, "the object is in effect and has no guard")
	require.True(t, m.Result.Keep, "the removal is open: %+v", m.Result)
}

// TestARemovalFollowsNobodyToAReservation removes an object whose home is a reservation again, as
// after a restore. Only a replica, which is being deleted, still names this home. The removal is
// aborted with the reason Homeless, and the reservation stays.
func TestARemovalFollowsNobodyToAReservation(t *testing.T) {
	w := newWorld(&config{mode: Everywhere, peers: 2, committed: "p"})
	cells := w.store.cells
	home, replica := *cells[0].obj, *cells[1].obj
	home.Stage, home.Finalizer, home.History = Reserved, false, nil
	replica.Terminating, replica.Foreign = true, true
	cells[0].obj, cells[1].obj = &home, &replica
	m := New(Operation{ID: "r", Action: Remove, Mode: Everywhere, Peers: []string{"a", "b"}, Lease: 2})
	driven(t, &w.store, m, func(Command) {})
	require.Equal(t, []any{Aborted, Homeless, "a"}, []any{m.Result.Ending, m.Result.Reason, m.Result.Peer})
	require.Equal(t, Reserved, cells[0].obj.Stage)
}

// TestAnAddBindsNoGuardToAPeerInQuarantine recovers a committed add. The recovery binds the guard if
// the primary's peer is Active. It does not if that peer is Quarantined or Joining: then the peer
// was restored, and its objects may have been removed since the backup.
func TestAnAddBindsNoGuardToAPeerInQuarantine(t *testing.T) {
	for state, bound := range map[string]bool{peerActive: true, peerQuarantined: false, peerJoining: false} {
		w := newWorld(&config{peers: 2, committed: "p"})
		cells := w.store.cells
		set, guard := *cells[0].set, *cells[1].obj
		set.Self.State, guard.Bound = state, Ref{}
		cells[0].set, cells[1].obj = &set, &guard
		primary := cells[0].obj
		op := Operation{ID: primary.Claim.Operation, Action: Add, Target: "a", Peers: []string{"a", "b"}, Lease: 2}
		m := Recover(op, Record{Primary: Ref{Peer: "a", UID: primary.UID}, Committing: true})
		driven(t, &w.store, m, func(Command) {})
		require.Equal(t, bound, cells[1].obj.Bound == Ref{Peer: "a", UID: primary.UID}, state)
		require.Equal(t, bound, m.Result.Durable, state)
	}
}

// TestAHomeThatWasForgottenHasNoHeirUnderAnothersName runs a Succeed (the election of a home) for
// the replica in b, whose home is missing in a, the rejoining peer. Another object has the name in
// c. Succeed elects no home: it deletes the replica, and the other object stays in effect.
func TestAHomeThatWasForgottenHasNoHeirUnderAnothersName(t *testing.T) {
	w := newWorld(&config{mode: Everywhere, peers: 3, committed: "p"})
	cells := w.store.cells
	other := *cells[0].obj
	other.UID, other.Claim.Operation, other.Claim.Peer, other.Claim.Target = "v", "v", "c", "c"
	other.Revision.Operation, other.History, other.Home = "v", nil, Home{}
	left := cells[1].obj
	cells[0].obj, cells[2].obj = nil, &other
	m := New(Operation{Action: Succeed, Mode: Everywhere, Peers: []string{"a", "b", "c"}, Target: "b", Met: *left, Into: []string{"b", "c"}, Doubted: "a", Lease: 2})
	driven(t, &w.store, m, func(Command) {})
	require.Equal(t, HeldByOther, m.Result.Reason)
	require.Nil(t, cells[1].obj)
	require.Equal(t, "v", cells[2].obj.UID)
	require.True(t, cells[2].obj.InEffect())
}
