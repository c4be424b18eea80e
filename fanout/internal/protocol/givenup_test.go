// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnUpdateWhoseEditedHomeIsGoneHasEnded recovers an update that was committed. A person has
// edited the object's home, and the home disappears while the recovery commits the edit. The result
// is Ended: another home may have replaced the first one, and may lack the update.
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

// TestAHomeThatMovedIsBroughtAlongWhenAPeerIsGivenUp runs the succession of an Account: the step of a
// removal by force that replaces or confirms the home. Here the home is not in the removed peer. If
// the home has moved before, its replica is written once more, because otherwise a late write of the
// move could make the replica name the removed peer. If the home has never moved, its replica stays
// as it is.
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

// givenUp returns peers b and c after peer a was removed by force while c joins. Both hold a
// replica of an Account whose home was in a.
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

// TestAnHeirInANewcomerIsBroughtAlong removes a peer by force while another one joins. Only the
// newcomer has an Active replica of an Account whose home is lost. The succession makes this
// replica the home, and creates an Active replica in the remaining member.
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

// TestAnHeirTakesTheNameFromALateReservation removes a peer by force while another peer joins. In
// the joining peer a late request has created a reservation of the name. The succession replaces
// the reservation by an Active replica.
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

// TestALeaveIsNotDecidedByAPeerThatWasGivenUp runs a leave whose coordinator does not know that
// the ring removed its first member by force and admitted another one. The leave is aborted, and
// its peer stays Active.
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
