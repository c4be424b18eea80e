// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
)

// loss is a peer that goes down and is believed to be lost for good. If the peer returns, it has
// all its state.
type loss struct {
	peer    string // "": none
	returns bool
}

// losing is the progress of a loss.
type losing struct {
	gone bool // the peer went down at some time
	down bool
}

// isDown reports whether peer i is down.
func (w *world) isDown(i int) bool {
	return w.losing.down && i >= 0 && peerName(i) == w.cfg.loss.peer
}

// losses adds the actions for the peer that is lost. The peer returns only after it was removed by
// force: a peer that returns before that is only slow.
func (w *world) losses(add func(k kind, a, b int)) {
	switch {
	case w.cfg.loss.peer == "":
	case !w.losing.gone:
		add(actLose, w.store.index(w.cfg.loss.peer), 0)
	case w.losing.down && w.cfg.loss.returns && w.givenUp():
		add(actRestart, w.store.index(w.cfg.loss.peer), 0)
	}
}

// givenUp reports whether the force-remove of the lost peer is over.
func (w *world) givenUp() bool {
	return !slices.ContainsFunc(w.procs, func(p *proc) bool { return w.about(p, Force) && p.state != done })
}

// about reports whether p runs a change of one of kinds that is about the lost peer.
func (w *world) about(p *proc, kinds ...ChangeKind) bool {
	return p.change != nil && !p.change.helper && p.change.op.Peer == w.cfg.loss.peer && slices.Contains(kinds, p.change.op.Kind)
}

// due reports whether the change of p may begin. The lost peer is removed by force only while it is
// down, and rejoins only after it was removed by force and is up again. A peer that is restored from
// a backup (cfg.restored) rejoins only after the restore.
func (w *world) due(p *proc) bool {
	switch {
	case w.cfg.restored != "" && p.change != nil && !p.change.helper && p.change.op.Kind == Return && p.change.op.Peer == w.cfg.restored:
		return w.restoring.over
	case w.cfg.loss.peer == "":
		return true
	case w.about(p, Force):
		return w.losing.down
	case w.about(p, Return, Join):
		return w.losing.gone && !w.losing.down && w.dismissed(w.store.index(w.cfg.loss.peer))
	}
	return true
}

// concludeLoss runs after the last fault. It lets the lost peer return if the configuration says
// so. It ends each process that can no longer begin its change of the lost peer, and each process
// that waits for a rival (another operation that holds the name) in the lost peer.
func (w *world) concludeLoss() {
	if w.cfg.loss.peer == "" {
		return
	}
	if w.losing.down && w.cfg.loss.returns && w.givenUp() {
		w.losing.down = false
	}
	for i := range w.procs {
		if p := w.procs[i]; p.state == waiting && w.isDown(w.store.index(p.result.HolderAt)) {
			// The add gave way to the rival and holds no object, so it may stop. The rival cannot be read.
			w.own(i).state = done
		}
		if p := w.procs[i]; p.state == idle && (w.about(p, Force) && !w.losing.gone || w.about(p, Return, Join) && !w.due(p) && w.givenUp()) {
			w.own(i).state = done
		}
	}
}

// runAlone runs a change from its beginning to its end.
func (w *world) runAlone(op ChangeOperation) string {
	w.procs = append(w.procs, &proc{change: w.changer(op)})
	last := len(w.procs) - 1
	w.beginChange(last)
	if s := w.drain(); s != "" {
		return fmt.Sprintf("%s of %s: %s", op.Kind, op.Peer, s)
	}
	r := w.procs[last].change.result
	refused := r.Reason == Occupied || op.Kind == Leave && r.Ending == Aborted && w.sole(op.Peer)
	if r.Ending != Done && r.Ending != AlreadyDone && !refused {
		return fmt.Sprintf("L1: %s of %s is %s (%s)", op.Kind, op.Peer, r.Ending, r.Reason)
	}
	return ""
}

// sole reports whether peer is the last member, and Active. Then its leave is aborted, because the
// last member may not leave. The other members were removed by force, or left before peer could.
func (w *world) sole(peer string) bool {
	set := w.store.cells[w.store.index(peer)].set
	return set != nil && set.Self.State == peerActive && set.Change.ID == "" && len(set.names(peer)) == 0
}

// halfway returns a change that was cut short because a peer that it needs was removed by
// force, or nil. Such a change is over, and must be requested again.
func (w *world) halfway() *ChangeOperation {
	if !w.losing.gone {
		return nil
	}
	for i, c := range w.store.cells {
		if !w.member(i) || c.set.Change.ID != "" {
			continue
		}
		if joining := c.set.peers(peerJoining); len(joining) > 0 {
			return new(change("again", Join, joining[0]))
		}
		if c.set.Self.State == peerLeaving {
			return new(change("again", Leave, peerName(i)))
		}
	}
	return nil
}

func (w *world) askAgain() string {
	for n := 0; n < 4; n++ {
		op := w.halfway()
		if op == nil {
			return ""
		}
		op.ID += strconv.Itoa(n)
		if s := w.runAlone(*op); s != "" {
			return s
		}
	}
	return ""
}

// releaseSkipped acts as a person who releases each bound guard whose primary is missing. Sweeps
// report the primary as lost and keep the guard. In fact the object was removed while the guard's
// peer (removed by force, but reachable) was no member, so the removal skipped the guard.
func (w *world) releaseSkipped() {
	for i, c := range w.store.cells {
		if x := c.obj; w.losing.gone && w.cfg.mode == Once && x != nil && x.Evidence(Once) && !x.Released && w.missing(x.Of(Once)) {
			o := *x
			o.Released, o.RV = true, w.store.rv()
			w.store.cells[i].obj = &o
		}
	}
}

// missing reports whether the peer of.Peer is up and has no object with the UID of.UID.
func (w *world) missing(of Ref) bool {
	at := w.store.index(of.Peer)
	y := w.store.cells[at].obj
	return !w.isDown(at) && (y == nil || y.UID != of.UID)
}

// ringless reports whether the lost peer was the last member: no member is left that it could join,
// or that could remove it by force.
func (w *world) ringless() bool {
	for i := range w.store.cells {
		if w.member(i) && !w.isDown(i) {
			return false
		}
	}
	return w.losing.down
}

// giveUp removes the lost peer by force if it is down and still a member. Before that, operations
// and changes that need the peer cannot be finished.
func (w *world) giveUp() string {
	if !w.losing.down || w.ringless() || w.forced(w.store.index(w.cfg.loss.peer)) {
		return ""
	}
	return w.runAlone(change("g", Force, w.cfg.loss.peer))
}

// addsAt reports whether an add goes to peer. An add that still reaches a peer which was
// removed by force commits there, and no protocol can prevent that.
func (w *world) addsAt(peer string) bool {
	return slices.ContainsFunc(w.cfg.plans, func(p plan) bool { return p.op.Action == Add && p.op.Target == peer })
}

// contended reports whether several processes may join or rejoin peer. One of them may refuse the
// peer while another one is about to activate a replica there. That replica is dead (it no longer
// holds its name), and the next sweep deletes it.
func (w *world) contended(peer string) bool {
	returns := w.cfg.helpers
	for _, op := range w.cfg.changes {
		if op.Peer == peer && (op.Kind == Return || op.Kind == Join) {
			returns++
		}
	}
	return returns > 1
}

// dismissed reports whether a member lists peer i as departed.
func (w *world) dismissed(i int) bool {
	return slices.ContainsFunc(w.store.cells, func(c cell) bool {
		return c.set != nil && c.set.current() && c.set.Self.Peer != peerName(i) && c.set.Gone(peerName(i))
	})
}

// suspended reports whether r, a record of the central log, is committed for an object in the lost
// peer, while that peer is up again but no member. Then r stays open until a person has decided
// about the object.
func (w *world) suspended(r record) bool {
	return r.d.Committed && !w.losing.down && w.cfg.loss.peer == r.d.Of.Peer && !w.member(w.store.index(r.d.Of.Peer))
}

// configured returns the peers that a process has configured when it begins. If no peer is lost in
// this configuration, it returns the parameter now, and otherwise the parameter all. It leaves out
// the lost peer if three conditions hold: a member lists this peer as departed, this peer is not
// the parameter about, and the world is settling or cfg.givenUp is set.
func (w *world) configured(now, all []string, about string) []string {
	peer := w.cfg.loss.peer
	switch {
	case peer == "":
		return now
	case !w.settling && !w.cfg.givenUp, peer == about, !w.dismissed(w.store.index(peer)):
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(p string) bool { return p == peer })
}

// peersOf returns the peers that plan i has configured.
func (cfg *config) peersOf(i int) []string {
	var peers []string
	for j := range cmp.Or(cfg.plans[i].peers, cfg.peers) {
		peers = append(peers, peerName(j))
	}
	return peers
}

// drawLoss makes a peer lost in a share of the random configurations, and may let it
// return.
func drawLoss(r *rand.Rand, cfg *config) {
	if r.IntN(5) > 0 || cfg.strangers != "" || cfg.tenant > 0 {
		return
	}
	members := cfg.peers
	if cfg.ring > 0 {
		members = cfg.ring
	}
	peer := peerName(r.IntN(members))
	if members < 2 || slices.ContainsFunc(cfg.changes, func(op ChangeOperation) bool { return op.Peer == peer }) {
		return
	}
	cfg.loss = loss{peer: peer, returns: r.IntN(3) > 0}
	cfg.changes = append(slices.Clone(cfg.changes), change("f", Force, peer))
	if cfg.loss.returns {
		cfg.changes = append(cfg.changes, change("h", []ChangeKind{Return, Join}[r.IntN(2)], peer))
	}
	cfg.givenUp = r.IntN(2) == 0
	cfg.helpers = max(cfg.helpers, r.IntN(2))
	cfg.creates = 0
}
