// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// cell is the model of one peer: the object of the contested name, or nil, and the PeerSet.
// Objects are never changed in place, so worlds can share them.
type cell struct {
	obj *Object
	set *PeerSet
}

// store is the peers, together with the counters that their API servers keep.
type store struct {
	cells   []cell
	records []record // the records of the central log
	uids    int
	rvs     int

	blind, named, inert, upsert, valve, laden bool // see mutant and config
}

func (s store) clone() store {
	s.cells = slices.Clone(s.cells)
	s.records = slices.Clone(s.records)
	return s
}

func peerName(i int) string { return "abcdefghijklmnopqrstuvwxyz"[i : i+1] }

func (s *store) index(peer string) int {
	if len(peer) != 1 || peer[0] < 'a' || int(peer[0]-'a') >= len(s.cells) {
		return -1
	}
	return int(peer[0] - 'a')
}

func (s *store) rv() string {
	s.rvs++
	return "r" + strconv.Itoa(s.rvs)
}

func refused(code Code) Reply { return Reply{Class: NotApplied, Code: code} }

// apply applies a command as an API server would. If the sender breaks a rule of the
// schema, it returns the rule as a violation.
func (s *store) apply(mode Mode, c Command) (Reply, string) {
	i := s.index(c.Peer)
	if c.Peer == "" {
		return Reply{Class: Applied, Code: OK}, ""
	}
	if i < 0 {
		return refused(NoSuchPeer), ""
	}
	at := &s.cells[i]
	switch c.Verb {
	case ReadPeerSet:
		if at.set == nil {
			return refused(NotFound), ""
		}
		return Reply{Class: Applied, Code: OK, PeerSet: *at.set}, ""
	case Read:
		if at.obj == nil {
			return refused(NotFound), ""
		}
		return Reply{Class: Applied, Code: OK, Object: *at.obj}, ""
	case Create:
		return s.create(at, mode, c)
	case Put:
		return s.put(at, mode, c)
	case Delete:
		return s.delete(at, mode, c)
	}
	return Reply{Class: Applied, Code: OK}, ""
}

func (s *store) create(at *cell, mode Mode, c Command) (Reply, string) {
	o := c.Object
	var broken string
	switch {
	case !o.Claimed || o.Stage != Reserved:
		broken = "rule: an object is born Reserved"
	case o.Claim.Peer != c.Peer:
		broken = "rule: the claim names another peer"
	case s.inert && o.Payload != "":
		broken = "rule: an inert reservation carries content"
	case o.Overfull(mode) && !s.laden:
		broken = "I12: a guard is created with payload"
	case o.Finalizer:
		broken = "rule: a reservation has no finalizer"
	case o.Removal != "":
		broken = "rule: a removal goes with its stage"
	case o.Claim.Primary && o.Claim.Of != Ref{}:
		broken = "rule: a primary names none"
	case o.Claim.Record != "":
		if o.Claim.Of != (Ref{}) || o.Bound != (Ref{}) {
			broken = "rule: a claim names its record alone"
		}
	case !o.Claim.Primary && (o.Claim.Of.Peer == "" || o.Claim.Of.UID == ""):
		broken = "rule: a secondary names its primary's UID"
	}
	if at.obj != nil {
		return refused(Exists), broken
	}
	s.uids++
	o.UID = "u" + strconv.Itoa(s.uids)
	o.RV = s.rv()
	o.Terminating, o.Foreign, o.Valve = false, false, s.valve
	if s.blind {
		broken = ""
	}
	if s.named && o.Claim.Primary {
		o.UID = "u-" + o.Claim.Operation
	}
	o.Digest = digestOf(o.Payload)
	at.obj = &o
	return Reply{Class: Applied, Code: OK, Object: o}, broken
}

// holds reports whether o meets the preconditions of the write c.
func (c Command) holds(o *Object) bool {
	return (c.UID == "" || c.UID == o.UID) && (c.RV == "" || c.RV == o.RV)
}

func (s *store) put(at *cell, mode Mode, c Command) (Reply, string) {
	switch {
	case at.obj == nil:
		return refused(NotFound), ""
	case !c.holds(at.obj):
		return refused(Conflict), ""
	}
	old, o := *at.obj, c.Object
	o.UID, o.Terminating, o.Foreign, o.Valve = old.UID, old.Terminating, old.Foreign, old.Valve
	o.Digest = digestOf(o.Payload)
	broken := rules(mode, old, o)
	switch {
	case broken != "":
	case mode == Everywhere && old.Claimed && !old.Primary(mode) && !s.inert && o.Payload != old.Payload && o.Revision.Number <= old.Revision.Number:
		broken = "rule: a replica changes with its revision"
	case mode == Everywhere && old.Edited() && o.Payload != old.Payload:
		broken = "K19: a person's edit is lost"
	case !old.Claimed && o.Payload != old.Payload:
		broken = "I9: a person's object is overwritten"
	case !old.Claimed && (o.Stage == Reserved || !o.Claim.Primary) && !s.blind:
		broken = "rule: an object is adopted as a committed primary"
	}
	if o.RV = old.RV; reflect.DeepEqual(o, old) {
		return Reply{Class: Applied, Code: OK, Object: old}, broken
	}
	o.RV = s.rv()
	at.obj = &o
	if o.Terminating && !o.Finalizer && !o.Foreign {
		at.obj = nil
	}
	return Reply{Class: Applied, Code: OK, Object: o}, broken
}

func (s *store) delete(at *cell, mode Mode, c Command) (Reply, string) {
	switch {
	case at.obj == nil:
		return refused(NotFound), ""
	case !c.holds(at.obj):
		return refused(Conflict), ""
	}
	var broken string
	old := *at.obj
	switch {
	case (c.UID == "" || c.RV == "") && !s.blind:
		broken = "I5: a delete without preconditions"
	case !old.Claimed, old.UID[0] == 'p' && old.Stage == Reserved:
		broken = "I9: a person's object is deleted"
	case old.Committed() && (old.Primary(mode) || old.yielded(mode) && !old.Home.frozen() || old.Stage != Active):
		broken = "I3: a committed object is deleted"
	}
	if old.Finalizer || old.Foreign {
		if !old.Terminating {
			old.Terminating = true
			old.RV = s.rv()
			at.obj = &old
		}
	} else {
		at.obj = nil
	}
	// An API server may reply to a delete with a status or with an object, so no code may rely
	// on an object in this reply.
	return Reply{Class: Applied, Code: OK}, broken
}

// stages reports whether an object of a kind with this mode can have stage s.
func stages(mode Mode, s Stage) bool {
	switch s {
	case Reserved, Removing:
		return true
	case Active:
		return mode == Everywhere
	default:
		return mode == Once
	}
}

// rank orders the stages as the schema does.
func rank(s Stage) int {
	switch s {
	case Reserved:
		return 0
	case Removing:
		return 2
	default:
		return 1
	}
}

// rules returns the transition rule of the schema that a write of o over old breaks, or "".
func rules(mode Mode, old, o Object) string {
	switch {
	case old.Claimed && (!o.Claimed || !reflect.DeepEqual(old.Claim, o.Claim)):
		return "rule: the claim is immutable"
	case old.Claimed && rank(o.Stage) < rank(old.Stage), old.Claimed && rank(old.Stage) == 1 && rank(o.Stage) == 1 && o.Stage != old.Stage:
		return fmt.Sprintf("rule: stage %s after %s", o.Stage, old.Stage)
	case old.Bound != Ref{} && o.Bound != old.Bound, o.Bound != Ref{} && (o.Claim.Primary || o.Claim.Of != Ref{} && o.Claim.Of != o.Bound):
		return "rule: a claim is bound once"
	case o.Heartbeat != old.Heartbeat && o.Heartbeat != old.Heartbeat+1:
		return "rule: the heartbeat adds one"
	case o.Payload != old.Payload && o.Overfull(mode):
		return "I12: a guard gets another payload"
	case old.Stage == Reserved && o.Stage == Reserved && o.Payload != old.Payload && !o.Guard(mode):
		return "rule: the payload of a reservation is immutable"
	case o.Stage == Removing && old.Stage == Reserved:
		return "rule: a reservation is removed"
	case o.Claimed && !stages(mode, o.Stage):
		return fmt.Sprintf("rule: stage %s of another kind", o.Stage)
	case (o.Stage == Removing) != (o.Removal != ""):
		return "rule: a removal goes with its stage"
	case o.Removal != old.Removal && old.Removal != "":
		return "rule: the removal is named once"
	case o.Revision.Number < old.Revision.Number:
		return "I7: the revision falls"
	case o.Revision.Number == old.Revision.Number && o.Revision != old.Revision && old.Revision != Revision{}:
		return "rule: a revision keeps its number"
	case o.Revision.Number == old.Revision.Number && old.Claimed && old.Stage != Reserved && mode == Everywhere &&
		(o.Revision != old.Revision || o.Payload != old.Payload):
		return "I7: content changes within a revision"
	case o.term() < old.term(), old.Home.Term > 0 && o.term() == old.term() && o.Home.Ref != old.Home.Ref:
		return "rule: the term of a home"
	case old.Terminating && o.Finalizer && !old.Finalizer:
		return "K7: a terminating object is committed"
	}
	return ""
}
