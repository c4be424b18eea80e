// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strconv"
	"strings"
)

// traceWidth is the width of the column with the actions in a trace; the next column has
// the state of the peers.
const traceWidth = 64

// describe returns the text for action a in w.
func (w *world) describe(a action) string {
	if a.kind&inside != 0 {
		return "in the namespace: " + w.lodger.describe(action{a.kind &^ inside, a.a, a.b})
	}
	i := int(a.a)
	name := func(i int) string {
		if p := w.procs[i]; p.change != nil {
			return "change " + p.change.op.ID + "/" + strconv.Itoa(i)
		}
		if w.procs[i].sweep {
			return "sweep " + strconv.Itoa(i)
		}
		return w.procs[i].op.ID
	}
	onWay := func() string {
		m := w.net[i]
		s := fmt.Sprintf("%s: %s", name(m.proc), m.cmd)
		if m.orphan {
			s += " (its sender no longer waits)"
		}
		return s
	}
	switch a.kind {
	case actRead:
		return "a look-up in " + peerName(i)
	case actBegin:
		return name(i) + " begins"
	case actDeliver:
		return onWay()
	case actApply:
		return "apply " + onWay()
	case actTimeout:
		return "no answer for " + onWay()
	case actUnsent:
		return "not sent: " + onWay()
	case actDeny:
		return "denied: " + onWay()
	case actDouble:
		return "sent twice: " + onWay()
	case actCrash:
		return name(i) + " crashes"
	case actRecover:
		return name(i) + " recovers"
	case actExpire:
		return name(i) + " expires"
	case actRetry:
		return name(i) + " tries again"
	case actTake:
		return fmt.Sprintf("process %d takes over the entry of %s", a.a, w.procs[a.b].op.ID)
	case actAdopt:
		return name(i) + " takes up " + w.store.records[a.b].op
	case actLose:
		return peerName(i) + " goes down"
	case actBackup:
		return "a backup of " + peerName(int(a.a)) + " is taken"
	case actAstray:
		return "the credentials of " + w.cfg.astray + " lead to another ring"
	case actCorrect:
		return "the credentials of " + w.cfg.astray + " are corrected"
	case actRestore:
		return peerName(int(a.a)) + " is restored from it"
	case actNotice:
		return "the others notice that " + peerName(i) + " was restored"
	case actRestart:
		return peerName(i) + " is back with all that it had"
	case actHelp:
		return fmt.Sprintf("%d helps the change in %s", i, peerName(int(a.b)))
	case actMove:
		return "the tenant goes on"
	case actLook:
		return name(i) + " lists all peers"
	case actSweep:
		return name(i) + " meets the object in " + peerName(int(a.b))
	case actBump:
		return "a client writes the status in " + peerName(i)
	case actDelete:
		return "a person deletes the object in " + peerName(i)
	case actHold:
		return "a client adds a finalizer to the object in " + peerName(i)
	case actCreate, actEdit, actWithdraw:
		return describePerson(a.kind, peerName(i))
	default:
		return "the other finalizer is removed in " + peerName(i)
	}
}

// String shows a command in a trace.
func (c Command) String() string {
	s := string(c.Verb) + " " + c.Peer + c.Record
	if c.Verb == Create || c.Verb == Put {
		o := c.Object
		role := "secondary of " + o.Claim.Of.Peer + "/" + o.Claim.Of.UID
		if o.Claim.Primary {
			role = "primary"
		}
		s += fmt.Sprintf(" %s %s of %s", o.Stage, role, o.Claim.Operation)
		if o.Home.Term > 1 {
			s += fmt.Sprintf(" home %s/%s term %d", o.Home.Peer, o.Home.UID, o.Home.Term)
		}
		if o.Revision.Number > 0 {
			s += fmt.Sprintf(" rev %d by %s", o.Revision.Number, o.Revision.Operation)
		}
	}
	if c.UID+c.RV != "" {
		s += " if " + c.UID + "@" + c.RV
	}
	return s
}

// membership shows a PeerSet in a trace.
func (c cell) membership() string {
	if c.set == nil {
		return "{}"
	}
	s := "{" + c.set.Self.State[:1] + " "
	for _, m := range c.set.Members {
		s += m.Peer + strings.ToLower(m.State[:1])
	}
	for _, d := range c.set.Departed {
		s += "-" + d.Peer
	}
	if c.set.Change.ID != "" {
		s += " " + c.set.Change.ID
	}
	if c.set.Change.Over {
		s += "!"
	}
	return s + "}"
}

// String shows the peers in a trace.
func (s store) String() string {
	out := ""
	for i, c := range s.cells {
		out += " " + peerName(i) + c.membership() + "="
		if c.obj == nil {
			out += "-"
			continue
		}
		o := c.obj
		out += fmt.Sprintf("%s@%s:", o.UID, o.RV)
		switch {
		case !o.Claimed:
			out += "person"
		case o.Claim.Primary:
			out += fmt.Sprintf("%s primary of %s", o.Stage, o.Claim.Operation)
		default:
			out += fmt.Sprintf("%s of %s/%s", o.Stage, o.Claim.Of.Peer, o.Claim.Of.UID)
		}
		if o.Revision.Number > 1 {
			out += fmt.Sprintf(" rev %d", o.Revision.Number)
		}
		if o.Terminating {
			out += " terminating"
		}
		if o.Home.Term > 1 {
			out += fmt.Sprintf(" rev %d home %s/%s term %d", o.Revision.Number, o.Home.Peer, o.Home.UID, o.Home.Term)
		}
		if o.Home.Yielded {
			out += " yielded"
		}
		if o.Finalizer {
			out += "+"
		}
		if o.Foreign {
			out += " held"
		}
	}
	for _, r := range s.records {
		out += fmt.Sprintf(" record %s=%s@%s", r.op, r.d.UID, r.d.RV)
		if r.d.Committed {
			out += " committed for " + r.d.Of.Peer + "/" + r.d.Of.UID
		}
		if r.history {
			out += " ended"
		}
	}
	return out
}
