// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strconv"
)

// restoring is the state of the peer that is restored: a backup of the peer is taken at some time,
// and put back at a later time. A restore ends all connections, so no request that was sent before
// the restore is applied after it.
type restoring struct {
	backup *cell
	over   bool
	// The processes have noticed the restore, and no longer believe the peer.
	noticed          bool
	quarantinedSince bool // the peer was in quarantine since the restore
	back             bool // the peer has rejoined since the restore
}

// restores adds the actions for the peer that is restored.
func (w *world) restores(add func(k kind, a, b int)) {
	i := w.store.index(w.cfg.restored)
	switch {
	case i < 0:
	case w.restoring.over:
		// Processes notice a restore if the peer's epoch is below one that they noted earlier. The first
		// write of the rejoin raises the epoch above all noted ones, so they notice it only before that.
		if w.cfg.noticed && !w.restoring.noticed && w.store.cells[i].set.Self.State == peerActive {
			add(actNotice, i, 0)
		}
	case w.restoring.backup == nil:
		add(actBackup, i, 0)
	default:
		add(actRestore, i, 0)
	}
}

func (w *world) backup(i int) {
	kept := w.store.cells[i]
	w.restoring.backup = &kept
}

// restore puts the backup of peer i back.
func (w *world) restore(i int) {
	w.store.cells[i] = *w.restoring.backup
	w.restoring = restoring{over: true, noticed: w.cfg.detected}
	var cut []message
	w.net = slices.DeleteFunc(w.net, func(m message) bool {
		if m.cmd.Peer != peerName(i) || m.applied {
			return false
		}
		if !m.orphan {
			cut = append(cut, m)
		}
		return true
	})
	for _, m := range cut {
		if p := w.procs[m.proc]; p.life == m.life {
			w.tellProc(m, Reply{Class: Unknown, Code: Unavailable})
		}
	}
}

// doubtful reports whether peer i was restored and has not rejoined yet: its objects prove nothing.
func (w *world) doubtful(i int) bool {
	return w.restoring.over && !w.restoring.back && i >= 0 && peerName(i) == w.cfg.restored
}

// disputes reports whether x is a replica of a home in a peer that was restored and has not rejoined
// yet. Until the rejoin, for which a person may have to decide about that home, x keeps the name, and
// another home of the name cannot have a replica in its place.
func (w *world) disputes(x *Object) bool {
	return w.cfg.mode == Everywhere && x != nil && x.Claimed && !x.Primary(Everywhere) && w.doubtful(w.store.index(x.Of(Everywhere).Peer))
}

// undoes reports whether the restore of peer i may undo a removal that has returned Done. The
// removal may be undone until the peer has rejoined. It may stay undone after that if the restore
// is noticed late: a sweep that lists the object before the notice creates its guards again.
func (w *world) undoes(i int) bool {
	return w.doubtful(i) || w.restoring.over && w.cfg.noticed && peerName(i) == w.cfg.restored
}

// hidden reports whether peer i is unreachable for process p, because p knows that the peer was
// restored from a backup. Until the peer is in quarantine, only its rejoin uses its replies.
func (w *world) hidden(i int, p *proc) bool {
	if !w.restoring.noticed || !w.doubtful(i) {
		return false
	}
	w.restoring.quarantinedSince = w.restoring.quarantinedSince || w.store.cells[i].set.Self.State != peerActive
	if w.cfg.mutant.trusting {
		return false
	}
	returning := p.change != nil && p.change.op.Kind == Return && p.change.op.Peer == w.cfg.restored
	return !returning && !w.restoring.quarantinedSince
}

// epochs returns the epochs of the peers' PeerSets.
func (w *world) epochs() map[string]int64 {
	epochs := map[string]int64{}
	for i, c := range w.store.cells {
		if c.set != nil {
			epochs[peerName(i)] = c.set.Epoch
		}
	}
	return epochs
}

// unseen reports whether a peer was restored and the processes do not notice this at once, in a
// configuration with faults after which an operation may not know whether its commit was applied:
// crashes, lost replies, deadlines or requests that are not sent.
func (w *world) unseen() bool {
	return w.restoring.over && !w.cfg.detected && w.cfg.crashes+w.cfg.timeouts+w.cfg.expiries+w.cfg.unsent > 0
}

// quarantines reports whether a peer was found restored and has not rejoined: operations that need
// the peer wait for that.
func (w *world) quarantines() bool {
	return w.restoring.over && w.cfg.detected && !w.restoring.back
}

// cameBack records the end of ch if ch is the rejoin of the restored peer.
func (w *world) cameBack(ch *changer) {
	if !w.restoring.over || ch.op.Kind != Return || ch.op.Peer != w.cfg.restored {
		return
	}
	switch {
	case ch.result.Ending == Done:
		if w.cfg.detected && !w.restoring.quarantinedSince && !w.restoring.back {
			w.fault("LIE: " + ch.op.ID + " says that " + ch.op.Peer + " came back, and it was not in quarantine")
		}
		w.restoring.back = true
	case w.store.cells[w.store.index(ch.op.Peer)].set.Self.State != peerActive:
		w.restoring.back = false // a person may have to decide first, also if the peer was back before
	}
}

// counts reports whether the invariants apply to the objects in peer i.
func (w *world) counts(i int) bool { return w.member(i) && !w.doubtful(i) }

// removed reports whether a removal of the object has begun.
func (w *world) removed() bool {
	return slices.ContainsFunc(w.procs, func(p *proc) bool { return p.op.Action == Remove && p.state != idle })
}

// durable returns the operations whose objects must not be lost: the adds that returned Done
// with Result.Durable, and the add of the object that is committed from the start. It returns
// none if a removal has begun.
func (w *world) durable() []string {
	if w.removed() {
		return nil
	}
	var ops []string
	if w.cfg.committed != "" {
		ops = append(ops, "o")
	}
	for i, p := range w.procs {
		if i < len(w.cfg.plans) && p.op.Action == Add && p.m == nil && p.result.Ending == Done && p.result.Durable {
			ops = append(ops, p.op.ID)
		}
	}
	return ops
}

// silent returns a violation if a durable object is lost without a trace: the object is in effect
// nowhere, and nothing holds its name.
func (w *world) silent() string {
	if w.cfg.restored == "" || w.deletes < w.cfg.deletes {
		return ""
	}
	for _, op := range w.durable() {
		if slices.Contains(w.dropped, op) {
			continue
		}
		if !slices.ContainsFunc(w.store.cells, func(c cell) bool {
			return c.obj != nil && c.obj.Claim.Operation == op && (c.obj.InEffect() || c.obj.Evidence(w.cfg.mode))
		}) {
			return "SILENT: " + op + " is lost without a report"
		}
	}
	return ""
}

// undone returns a violation if a restore has undone a removal that returned Done: the removed
// object is in effect in a peer to which the invariants apply (see counts).
func (w *world) undone() string {
	if !w.restoring.over || w.cfg.noticed {
		// If the restore is noticed late, a sweep before that may create the guards of a removed object.
		return ""
	}
	for i, p := range w.procs {
		if i >= len(w.cfg.plans) || p.op.Action != Remove || p.m != nil || p.result.Ending != Done {
			continue
		}
		for j, c := range w.store.cells {
			if c.obj != nil && w.counts(j) && c.obj.Primary(w.cfg.mode) && c.obj.InEffect() && c.obj.UID == p.result.Primary.UID {
				return "UNDONE: what " + p.op.ID + " removed is in effect again in " + peerName(j)
			}
		}
	}
	return ""
}

// suspendedAt reports whether secondary x waits for the rejoin of its primary's peer or, as evidence
// of a primary that a restore has lost, for the decision of a person.
func (w *world) suspendedAt(x *Object) bool {
	of := x.Of(w.cfg.mode)
	at := w.store.index(of.Peer)
	if at >= 0 && w.withheld(at) {
		return true
	}
	if !w.restoring.over || of.Peer != w.cfg.restored {
		return false
	}
	y := w.store.cells[at].obj
	present := y != nil && y.UID == of.UID
	return x.Evidence(w.cfg.mode) && (!present || w.doubtful(at)) || present && w.doubtful(at)
}

// contradicted reports whether operation p is in doubt because its primary's peer and another peer
// contradict each other, and one of the two was restored.
func (w *world) contradicted(p *proc) bool {
	return p.result.Reason == Suspect && (w.doubtful(w.store.index(p.result.HolderAt)) || w.doubtful(w.store.index(p.record.Primary.Peer)))
}

// concludeRestore requests another rejoin of the restored peer if all earlier ones have ended, and
// the peer has not rejoined. It requests none if objects in the peer prevented a rejoin.
func (w *world) concludeRestore() {
	if !w.restoring.over || w.restoring.back || !w.cfg.detected && !w.cfg.noticed {
		return
	}
	tried := 0
	for _, p := range w.procs {
		if p.change == nil || p.change.op.Kind != Return {
			continue
		}
		if p.state != done || p.change.result.Reason == Occupied {
			return
		}
		tried++
	}
	if tried < len(w.cfg.changes)+3 {
		w.procs = append(w.procs, &proc{change: w.changer(change("anew"+strconv.Itoa(tried), Return, w.cfg.restored))})
	}
}

// comeAgain lets the restored peer rejoin, after a sweep has cleaned up operations that are over. If
// the rejoin is refused twice, it deletes the object in this peer, as a person would.
func (w *world) comeAgain() string {
	if !w.restoring.over || !w.cfg.detected && !w.cfg.noticed {
		return ""
	}
	w.restoring.noticed = true
	if !w.restoring.back {
		w.procs = append(w.procs, &proc{sweep: true})
		if s := w.sweepAll(len(w.procs) - 1); s != "" {
			return s
		}
	}
	for n := 0; n < 3 && !w.restoring.back; n++ {
		if s := w.runAlone(change("again"+strconv.Itoa(n), Return, w.cfg.restored)); s != "" {
			return s
		}
		if s := w.recoverAll(); s != "" {
			return s
		}
		if n > 0 && !w.restoring.back {
			w.store.cells[w.store.index(w.cfg.restored)].obj = nil
		}
	}
	if !w.restoring.back {
		return "L1: " + w.cfg.restored + " does not come back after a person has decided"
	}
	return ""
}

// forked returns a violation if, after sweeps, a replica contradicts the restored home, or that
// home lacks a durable update whose loss no process has reported.
func (w *world) forked() string {
	at := w.store.index(w.cfg.restored)
	if w.cfg.mode != Everywhere || !w.doubtful(at) {
		return ""
	}
	home := w.store.cells[at].obj
	if home == nil || !home.Primary(Everywhere) || !home.Committed() {
		return ""
	}
	for i, c := range w.store.cells {
		if x := c.obj; i != at && x != nil && x.Claimed && x.Of(Everywhere) == (Ref{peerName(at), home.UID}) &&
			(x.Revision != home.Revision || x.Payload != home.Payload) {
			return "LIE: the replica in " + peerName(i) + " disagrees with its home after the sweep"
		}
	}
	if w.durable() == nil || w.deletes < w.cfg.deletes {
		return "" // a removal has begun
	}
	for i, p := range w.procs {
		if i >= len(w.cfg.plans) || p.op.Action != Update || p.result.Ending != Done {
			continue
		}
		overwritten := p.overtaken || slices.ContainsFunc(home.History, func(h Revision) bool { return h.Number > p.result.Revision })
		if p.result.Primary.UID == home.UID && p.result.Durable && !home.History.has(p.op.ID) && !overwritten && !slices.Contains(w.dropped, p.op.ID) {
			return "LIE: " + p.op.ID + " said everywhere, and is lost without a report"
		}
	}
	return ""
}

// judgeRevision checks that no replica has another operation's revision under the number of
// an update that returned Done. It skips an update that is not durable, since its object is
// being removed, and worlds with a removal or delete, which may take the replicas that a
// sweep created again after the restore.
func (w *world) judgeRevision(p *proc) {
	if !p.m.Result.Durable || w.removed() || w.deletes < w.cfg.deletes {
		return
	}
	rev := p.m.Primary.Revision
	for i, c := range w.store.cells {
		x := c.obj
		if x != nil && !w.doubtful(i) && x.Claimed && x.Stage == Active && x.Claim.Operation == p.m.Primary.Claim.Operation &&
			x.Revision.Number == rev.Number && x.Revision.Operation != rev.Operation {
			w.fault(fmt.Sprintf("LIE: %s says everywhere and %s has %s under number %d", p.op.ID, peerName(i), x.Revision.Operation, rev.Number))
		}
	}
}

// reported records the operation whose content was reported as dropped.
func (w *world) reported(m *Machine) {
	if op := m.Result.Mend.Dropped.Operation; op != "" && !slices.Contains(w.dropped, op) {
		w.dropped = append(slices.Clip(w.dropped), op)
	}
}

// restoreSmall are configurations in which only evidence (secondaries that prove a commit) shows
// that a peer was restored.
var restoreSmall = []config{
	{name: "A is restored, X@A", peers: 2, restored: "a", sweepers: 1, plans: []plan{add("x", "a", 1, "p")}},
	{name: "A is restored, X@A, Y@B", peers: 2, restored: "a", plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
	{name: "B is restored, X@A, Y@A", peers: 2, restored: "b", plans: []plan{add("x", "a", 1, "p"), add("y", "a", 2, "q")}},
	{name: "the owner's peer is restored, Y@B", peers: 2, committed: "p", restored: "a", sweepers: 1, plans: []plan{add("y", "b", 1, "q")}},
	{name: "a guard's peer is restored, Y@B", peers: 2, committed: "p", restored: "b", sweepers: 1, plans: []plan{add("y", "b", 1, "q")}},
	{name: "the owner's peer is restored, removal", peers: 2, committed: "p", restored: "a", sweepers: 1, plans: []plan{removal("r")}},
	{name: "the home's peer is restored, update", mode: Everywhere, peers: 2, committed: "p", restored: "a", sweepers: 1, plans: []plan{update("x", "q")}},
	{name: "the home's peer is restored, two updates", mode: Everywhere, peers: 2, committed: "p", restored: "a", plans: []plan{update("x", "q"), update("y", "s")}},
	{name: "a replica's peer is restored, update", mode: Everywhere, peers: 2, committed: "p", restored: "b", sweepers: 1, plans: []plan{update("x", "q")}},
	{name: "the home's peer is restored, removal", mode: Everywhere, peers: 2, committed: "p", restored: "a", plans: []plan{removal("r")}},
	{name: "A is restored, account", mode: Everywhere, peers: 2, restored: "a", sweepers: 1, plans: []plan{add("x", "a", 1, "p")}},
	{name: "A is restored, account added, removal", mode: Everywhere, peers: 2, restored: "a", plans: []plan{add("x", "a", 1, "p"), after(1, removal("r"))}},
	{name: "A is restored, account added, update", mode: Everywhere, peers: 2, restored: "a", plans: []plan{add("x", "a", 1, "p"), after(1, update("r", "q"))}},
	{name: "A is restored, X@A, removal", peers: 2, restored: "a", plans: []plan{add("x", "a", 1, "p"), after(1, removal("r"))}},
}

var restoreDeep = []config{
	{name: "A is restored, X@A, Y@B, sweep", peers: 2, restored: "a", sweepers: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
	{name: "B is restored, X@A, Y@B, sweep", peers: 2, restored: "b", sweepers: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
	{name: "A is restored, X@A, Y@B, a crash", peers: 2, restored: "a", crashes: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
	{name: "A is restored, X@A, 3 peers, sweep", peers: 3, restored: "a", sweepers: 1, plans: []plan{add("x", "a", 1, "p")}},
	{name: "A is restored, account, 3 peers, sweep", mode: Everywhere, peers: 3, restored: "a", sweepers: 1, plans: []plan{add("x", "a", 1, "p")}},
	{name: "a guard's peer is restored, removal, 3 peers", peers: 3, committed: "p", restored: "b", sweepers: 1, plans: []plan{removal("r")}},
	{name: "a replica's peer is restored, removal, 3 peers", mode: Everywhere, peers: 3, committed: "p", restored: "b", sweepers: 1, plans: []plan{removal("r")}},
	{name: "A is restored, X@A, Y@B, 3 peers", peers: 3, restored: "a", plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
	{name: "the home's peer is restored, two updates, sweep", mode: Everywhere, peers: 2, committed: "p", restored: "a", sweepers: 1, plans: []plan{update("x", "q"), update("y", "s")}},
	{name: "the home's peer is restored, two updates, 3 peers", mode: Everywhere, peers: 3, committed: "p", restored: "a", plans: []plan{update("x", "q"), update("y", "s")}},
	{name: "a replica's peer is restored, update, removal", mode: Everywhere, peers: 2, committed: "p", restored: "b", plans: []plan{update("x", "q"), removal("r")}},
}
