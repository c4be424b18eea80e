// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// driven carries machine m through. Before each command, meanwhile may change the store.
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

// TestACoverThatMendsAHomeBringsItsReplicas covers a restored home that a replica is ahead
// of, while somebody who judged that replica before the restore deletes it. The peer that
// comes back lists only the others.
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

// TestAnEditOfAHomeThatIsAReservationAgain sweeps a home that a person edited, and whose
// peer is put back to before its commit meanwhile.
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

// TestARemovalThatFoundNothingReadsOnceMore recovers a removal that finds its object gone.
// Before it deletes the guards, the object's peer is put back to when it was in force.
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
	require.NotNil(t, cells[1].obj, "the object is in force and has no guard")
	require.True(t, m.Result.Keep, "the removal is open: %+v", m.Result)
}

// TestARemovalFollowsNobodyToAReservation removes an object by a replica that is being
// deleted, and whose home is a reservation again.
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

// TestAnAddBindsNoGuardToAPeerInQuarantine recovers an add whose primary's peer was restored
// and is in quarantine: what it holds may have been removed.
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

// TestAHomeThatWasForgottenHasNoHeirUnderAnothersName brings a peer back that forgot the home
// of a replica, while another object has the name in a third peer.
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

// TestAnUpdateWhoseEditedHomeIsGoneHasEnded recovers an update that was committed, and whose
// home a person edited and somebody took away meanwhile: it may have another home, without
// the update.
func TestAnUpdateWhoseEditedHomeIsGoneHasEnded(t *testing.T) {
	w := newWorld(&config{mode: Everywhere, peers: 2, committed: "p"})
	cells := w.store.cells
	home := *cells[0].obj
	home.Revision = Revision{Number: 2, Operation: "x", Digest: digestOf("q")}
	home.History = append(home.History[:len(home.History):len(home.History)], Revision{Number: 2, Operation: "x"})
	home.Payload, home.Digest = "e", digestOf("e")
	cells[0].obj = &home
	op := Operation{ID: "x", Action: Update, Mode: Everywhere, Peers: []string{"a", "b"}, Payload: "q", Digest: digestOf("q"), Lease: 2}
	m := Recover(op, Record{Primary: Ref{Peer: "a", UID: home.UID}, Committing: true, Committed: true})
	driven(t, &w.store, m, func(c Command) {
		if c.Verb == Put && c.Peer == "a" {
			cells[0].obj = nil
		}
	})
	require.Equal(t, Ended, m.Result.Ending, "%+v", m.Result)
}

// TestAHomeThatMovedIsBroughtAlongWhenAPeerIsGivenUp gives up a peer that an Account's home
// has left again. Who still brings that earlier home along may be about to name it.
func TestAHomeThatMovedIsBroughtAlongWhenAPeerIsGivenUp(t *testing.T) {
	for term, written := range map[int64]bool{0: false, 3: true} {
		w := newWorld(&config{mode: Everywhere, peers: 2, committed: "p"})
		cells := w.store.cells
		home := *cells[0].obj
		if term > 0 {
			home.Home = Home{Ref: Ref{Peer: "a", UID: home.UID}, Term: term}
		}
		cells[0].obj = &home
		before := cells[1].obj.RV
		m := New(Operation{Action: Succeed, Mode: Everywhere, Peers: []string{"a", "b", "c"}, Target: "a", Met: home, Into: []string{"a", "b"}, Lease: 2})
		driven(t, &w.store, m, func(Command) {})
		require.Equal(t, Done, m.Result.Ending, "%+v", m.Result)
		require.Equal(t, written, cells[1].obj.RV != before, "term %d", term)
		require.Equal(t, home.UID, cells[1].obj.Of(Everywhere).UID)
	}
}

// givenUp are two peers that are left of three, of which c joins. Both hold replicas of an
// Account whose home was in a.
func givenUp() (*world, Operation) {
	w := newWorld(&config{mode: Everywhere, peers: 3, committed: "p"})
	cells := w.store.cells
	for i, state := range map[int]string{1: peerActive, 2: peerJoining} {
		set := *cells[i].set
		set.Self.State = state
		set.Members = []Member{{Peer: "b", State: peerActive}, {Peer: "c", State: peerJoining}}
		cells[i].set = &set
	}
	cells[0].obj = nil
	return w, Operation{Action: Succeed, Mode: Everywhere, Peers: []string{"b", "c"}, Into: []string{"b", "c"}, Patience: Hasty, Lease: 2}
}

// TestAnHeirInANewcomerIsBroughtAlong gives up a peer while another one joins, which alone
// has a replica in force of an Account whose home is lost.
func TestAnHeirInANewcomerIsBroughtAlong(t *testing.T) {
	w, op := givenUp()
	cells := w.store.cells
	cells[1].obj = nil
	op.Target, op.Met = "c", *cells[2].obj
	m := New(op)
	driven(t, &w.store, m, func(Command) {})
	require.Empty(t, m.Result.Pending)
	require.NotNil(t, cells[1].obj)
	require.Equal(t, Active, cells[1].obj.Stage)
	require.Equal(t, Ref{Peer: "c", UID: cells[2].obj.UID}, cells[1].obj.Of(Everywhere))
}

// TestAnHeirTakesTheNameFromALateReservation gives up a peer while another one joins, where
// a request that was late has left a reservation of the name.
func TestAnHeirTakesTheNameFromALateReservation(t *testing.T) {
	w, op := givenUp()
	cells := w.store.cells
	cells[2].obj = &Object{
		UID: "late", RV: "r1", Claimed: true, Stage: Reserved, Payload: "x",
		Claim: Claim{Operation: "x", Primary: true, Peer: "c", Target: "c"}, Revision: Revision{Number: 1, Operation: "x"},
	}
	op.Target, op.Met = "b", *cells[1].obj
	m := New(op)
	driven(t, &w.store, m, func(Command) {})
	require.Empty(t, m.Result.Pending)
	require.Equal(t, Ref{Peer: "b", UID: cells[1].obj.UID}, cells[2].obj.Of(Everywhere))
	require.Equal(t, Active, cells[2].obj.Stage)
}

// TestALeaveIsNotDecidedByAPeerThatWasGivenUp has a peer leave whose ring gave its first
// member up and let another one in, by a coordinator that knows neither.
func TestALeaveIsNotDecidedByAPeerThatWasGivenUp(t *testing.T) {
	sets := ringOf(map[string]string{"a": "ring", "b": "ring"})
	now := *sets["b"]
	now.Members = []Member{sets["b"].Self, {Peer: "c", UID: "uc", State: peerActive}}
	now.Departed = []Departure{{Peer: "a", UID: "ua", How: "Forced"}}
	sets["b"] = &now
	result := carryThrough(t, NewChange(ChangeOperation{ID: "l", Kind: Leave, Peer: "b", UID: "ub", Peers: []string{"a", "b"}, Lease: 2}), sets)
	require.Equal(t, []any{Aborted, Membership}, []any{result.Ending, result.Reason}, "%+v", result)
	require.Equal(t, peerActive, sets["b"].Self.State)
	require.True(t, sets["a"].Lists("b"))
}
