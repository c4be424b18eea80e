// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func move(id, to string) plan {
	return plan{op: Operation{ID: id, Action: Move, Target: to, Start: 1}}
}

// after returns p so that it begins when plan n, counted from 1, is over.
func after(n int, p plan) plan {
	p.after = n
	return p
}

// onceIn returns p so that it begins when peer is a full member.
func onceIn(peer string, p plan) plan {
	p.member = peer
	return p
}

// byHand is the entry of world.committed for the delete of a home by a person.
const byHand = "by hand"

// latest is the highest revision that any home of an object had.
type latest struct {
	origin     string
	generation int64
	revision   Revision
}

// homes records in world.committed the home that a write of o in peer shows: "@p" if p is
// home, and ">p" if a move to p is committed. It reports a violation if o lacks a revision that an
// earlier home of the object had.
func (w *world) homes(peer string, o Object) {
	lost := w.forced(w.store.index(peer))
	switch {
	case w.restoring.over:
		return
	case w.cfg.mode != Everywhere || o.Stage == Reserved:
		return
	case o.yielded(Everywhere) && !o.Home.frozen() && !lost && w.electable(peer, o.Home.Peer):
		w.note(">" + o.Home.Peer)
		return
	case lost && o.Primary(Everywhere) && slices.Contains(w.committed, ">"+peer):
		w.note("@" + peer)
		return
	case lost || !o.Primary(Everywhere):
		return
	}
	w.note("@" + peer)
	if w.latest.origin != o.Claim.Operation {
		w.latest = latest{origin: o.Claim.Operation}
	}
	was := w.latest.revision
	if g := o.term() / generation; g > w.latest.generation {
		// The earlier home was lost, and another one was elected. It needs only the revisions that a
		// remaining member has.
		w.latest.generation, was = g, Revision{}
		for i, c := range w.store.cells {
			if w.member(i) && c.obj != nil && c.obj.active() && c.obj.Claim.Operation == o.Claim.Operation && c.obj.Revision.Number > was.Number {
				was = c.obj.Revision
			}
		}
	}
	switch {
	case o.Revision.Number < was.Number, o.Revision.Number == was.Number && o.Revision != was:
		w.fault(fmt.Sprintf("I10: revision %d by %s is lost: the home in %s has %d by %s",
			was.Number, was.Operation, peer, o.Revision.Number, o.Revision.Operation))
	default:
		w.latest.revision = o.Revision
	}
}

// electable reports whether a move from one peer to another may be committed. If the target is
// removed by force, the move may be committed until that change is over: the change replaces a home
// that was made in the target.
func (w *world) electable(from, to string) bool {
	return !w.forced(w.store.index(to)) || w.store.cells[w.store.index(from)].set.Change.ID != ""
}

// moveHome moves the home from one peer to another, and updates the replica in no other peer. It
// returns the name of the new home's peer.
func (w *world) moveHome(from, to string) string {
	p, q := &w.store.cells[w.store.index(from)], &w.store.cells[w.store.index(to)]
	x := p.obj.yieldedTo(Ref{Peer: to, UID: q.obj.UID})
	y := q.obj.successorOf(x)
	x.RV, y.RV = w.store.rv(), w.store.rv()
	p.obj, q.obj = &x, &y
	w.homes(to, y)
	return to
}

// behind reports whether x is a replica of home y that names an earlier home.
func (w *world) behind(x, y *Object) bool {
	return w.cfg.mode == Everywhere && x != nil && x.Claimed && !x.Primary(Everywhere) &&
		x.Claim.Operation == y.Claim.Operation && x.term() < y.term()
}

// replacing reports whether a change of the membership is under way, and another home was elected
// because the object's home was lost: y was elected (or moved there since), or replica x names an
// elected replica while a move has made y home. In both cases missing replicas are created again.
func (w *world) replacing(x, y *Object) bool {
	heir := y.term() >= generation || x != nil && x.Home.frozen() && x.Claim.Operation == y.Claim.Operation
	return heir && slices.ContainsFunc(w.store.cells, func(c cell) bool { return c.set != nil && c.set.Change.ID != "" })
}

// judgeMove checks the result of a move that is over: Done means that the target was home.
func (w *world) judgeMove(p *proc) {
	if r := p.m.Result; r.Ending == Done && !slices.Contains(w.committed, "@"+p.op.Target) {
		w.fault("I4: " + p.op.ID + " says done and " + p.op.Target + " never was home")
	}
}

// configure extends p's configuration by the peer that has the home, if p is in doubt because that
// peer is not configured. Without that peer the operation must stay in doubt, because no other peer
// can decide.
func (p *proc) configure() {
	r := p.result
	if r.Ending == InDoubt && r.Reason == Homeless && !slices.Contains(p.op.Peers, r.Peer) {
		p.op.Peers = slices.Sorted(slices.Values(append(slices.Clone(p.op.Peers), r.Peer)))
	}
}

// TestDoubtAboutUnknownHome recovers an update whose home moved to a peer that its coordinator does
// not know: the update is in doubt until the peer is configured, and settled then.
func TestDoubtAboutUnknownHome(t *testing.T) {
	cfg := config{mode: Everywhere, peers: 3, committed: "p", crashes: 1, plans: []plan{known(2, update("x", "q")), move("m", "c")}}
	w := newWorld(&cfg)
	w.alone = true
	w.do(action{kind: actBegin})
	for w.store.cells[0].obj.Revision.Number < 2 {
		require.NotEmpty(t, w.net)
		w.deliver(0)
	}
	w.do(action{kind: actCrash})
	w.net = nil
	w.do(action{kind: actBegin, a: 1})
	require.Empty(t, w.drain())
	w.do(action{kind: actRecover})
	require.Empty(t, w.drain())
	got := w.procs[0].result
	require.Equal(t, []any{InDoubt, Homeless, "c"}, []any{got.Ending, got.Reason, got.Peer})
	w.procs[0].configure()
	w.do(action{kind: actRecover})
	require.Empty(t, w.drain())
	require.Equal(t, Done, w.procs[0].result.Ending)
}

// TestMoveReportsWhatHasTheNameInItsTarget moves a home to a peer where another object has the
// name. The peer is reachable, so the move reports that object and not an unreachable peer.
func TestMoveReportsWhatHasTheNameInItsTarget(t *testing.T) {
	reservation := func(peer string, primary bool) *Object {
		o := &Object{UID: "other", RV: "r90", Claimed: true, Stage: Reserved, Claim: Claim{Operation: "z", Primary: primary, Peer: peer, Target: peer}}
		if !primary {
			o.Claim.Target, o.Claim.Of = "c", Ref{Peer: "c", UID: "other"}
		}
		return o
	}
	for name, row := range map[string]struct {
		held map[string]*Object
		at   string
	}{
		"the reservation of another add":   {map[string]*Object{"b": reservation("b", true)}, "b"},
		"an object without a claim":        {map[string]*Object{"b": {UID: "other", RV: "r90"}}, "b"},
		"a guard of an add in a third one": {map[string]*Object{"b": reservation("b", false), "c": reservation("c", true)}, "c"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(&config{mode: Everywhere, peers: 3, committed: "p", plans: []plan{move("m", "b")}})
			w.alone = true
			for peer, o := range row.held {
				w.store.cells[w.store.index(peer)].obj = o
			}
			w.do(action{kind: actBegin})
			for n := 0; len(w.net) > 0; n++ {
				require.Less(t, n, 400)
				w.deliver(0)
			}
			got := w.procs[0].result
			require.Equal(t, []any{Aborted, HeldByOther, "b", row.at, "other"}, []any{got.Ending, got.Reason, got.Peer, got.HolderAt, got.Holder.UID})
			require.Empty(t, got.Pending)
		})
	}
}

// judgeEnded checks that no object of an add that returned Ended is in effect, if the add is
// of an Everywhere object. Objects in a peer that was removed by force do not count, as in I1
// and I7: no process that settles an operation can know of them.
func (w *world) judgeEnded(p *proc) {
	if p.op.Action != Add || w.cfg.mode != Everywhere {
		return
	}
	for i, c := range w.store.cells {
		if o := c.obj; o != nil && !w.forced(i) && !w.undoes(i) && o.Claim.Operation == p.op.ID && (o.Primary(Everywhere) || o.yielded(Everywhere)) && o.Committed() {
			w.fault("I4: " + p.op.ID + " says ended and its object is in effect in " + peerName(i))
		}
	}
}

// settledHome checks that the object did not get lost, and that only its home has our finalizer.
func (w *world) settledHome(owner *Object) string {
	if w.cfg.mode != Everywhere || w.restoring.over {
		return ""
	}
	// A person may have deleted the replicas that would have remained after the loss of a home.
	if owner == nil && !(w.losing.gone && w.deletes < w.cfg.deletes) && w.cfg.committed != "" && !slices.Contains(w.committed, byHand) {
		for _, p := range w.cfg.plans {
			if p.op.Action == Remove && slices.ContainsFunc(w.committed, func(op string) bool { return op[0] == p.op.ID[0] }) {
				return ""
			}
		}
		return "I3: the object is gone without a removal"
	}
	for i, c := range w.store.cells {
		if o := c.obj; o != nil && w.member(i) && (o.former(Everywhere) || o.yielded(Everywhere)) {
			return "I10: the object in " + peerName(i) + " is still held as a home"
		}
	}
	return ""
}

// movesSmall are the configurations with moves that every run of the tests explores.
var movesSmall = []config{
	{name: "move", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, plans: []plan{move("m", "b")}},
	{name: "move, a timeout, a crash", mode: Everywhere, peers: 2, committed: "p", timeouts: 1, crashes: 1, plans: []plan{move("m", "b")}},
	{name: "move and update", mode: Everywhere, peers: 2, committed: "p", plans: []plan{move("m", "b"), update("x", "q")}},
	{name: "move and removal", mode: Everywhere, peers: 2, committed: "p", plans: []plan{move("m", "b"), removal("r")}},
	{name: "move there and back", mode: Everywhere, peers: 2, committed: "p", timeouts: 1, plans: []plan{move("m", "b"), after(1, move("n", "a"))}},
	{name: "move there and back, an update", mode: Everywhere, peers: 2, committed: "p", plans: []plan{move("m", "b"), after(1, move("n", "a")), update("x", "q")}},
	{name: "move, a replica deleted", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, deletes: 1, plans: []plan{move("m", "b")}},
	{name: "add and move", mode: Everywhere, peers: 2, timeouts: 1, plans: []plan{add("x", "a", 1, "p"), move("m", "b")}},
	{name: "add, move, then removal", mode: Everywhere, peers: 2, plans: []plan{add("x", "a", 1, "p"), move("m", "b"), after(2, removal("r"))}},
	{name: "adoption of an object that moves, a crash", mode: Everywhere, peers: 2, committed: "p", crashes: 1, plans: []plan{adoption("w", "a"), move("m", "b")}},
	{name: "homes that no replica names, removal", mode: Everywhere, peers: 3, committed: "p", moved: "bc", plans: []plan{removal("r")}},
	{name: "homes that no replica names, kubectl delete", mode: Everywhere, peers: 3, committed: "p", moved: "bc", sweepers: 1, deletes: 1},
}

var forceA = change("f", Force, "a")

// successionsSmall are configurations with homes that are lost with their peer.
var successionsSmall = []config{
	{name: "the home is lost", mode: Everywhere, peers: 3, committed: "p", crashes: 1, changes: changes(forceA)},
	{name: "the home is lost, an update", mode: Everywhere, peers: 3, committed: "p", changes: changes(forceA), plans: []plan{update("x", "q")}},
	{name: "the home is lost, a sweep", mode: Everywhere, peers: 3, committed: "p", changes: changes(forceA), sweepers: 1},
	{name: "the home is lost while it moves", mode: Everywhere, peers: 3, committed: "p", changes: changes(forceA), plans: []plan{move("m", "b")}},
}

// successionsDeep are configurations like those in successionsSmall, whose exploration takes longer.
var successionsDeep = []config{
	{name: "the home is lost, an update, a crash", mode: Everywhere, peers: 3, committed: "p", crashes: 1, changes: changes(forceA), plans: []plan{update("x", "q")}},
	{name: "the home is lost, an update, a timeout", mode: Everywhere, peers: 3, committed: "p", timeouts: 1, changes: changes(forceA), plans: []plan{update("x", "q")}},
	{name: "the home is lost while it moves to the last", mode: Everywhere, peers: 3, committed: "p", crashes: 1, changes: changes(forceA), plans: []plan{move("m", "c")}},
	{name: "the home is lost, a replica deleted", mode: Everywhere, peers: 3, committed: "p", deletes: 1, changes: changes(forceA)},
	{name: "the home is lost, crash, helper", mode: Everywhere, peers: 3, committed: "p", crashes: 1, helpers: 1, changes: changes(forceA)},
	{name: "the home is lost, removal", mode: Everywhere, peers: 3, committed: "p", changes: changes(forceA), plans: []plan{removal("r")}},
	{name: "the home is lost, an add", mode: Everywhere, peers: 3, changes: changes(forceA), plans: []plan{add("x", "a", 1, "p")}},
}

// movesDeep are configurations with moves that take longer.
var movesDeep = []config{
	{name: "9a: move, update, removal", mode: Everywhere, peers: 2, committed: "p", plans: []plan{move("m", "b"), update("x", "q"), removal("r")}},
	{name: "9b: move, update, a replica deleted", mode: Everywhere, peers: 2, committed: "p", deletes: 1, plans: []plan{move("m", "b"), update("x", "q")}},
	{name: "move, update, a timeout", mode: Everywhere, peers: 2, committed: "p", timeouts: 1, plans: []plan{move("m", "b"), update("x", "q")}},
	{name: "move, update, a crash", mode: Everywhere, peers: 2, committed: "p", crashes: 1, plans: []plan{move("m", "b"), update("x", "q")}},
	{name: "move, removal, timeout, crash", mode: Everywhere, peers: 2, committed: "p", timeouts: 1, crashes: 1, plans: []plan{move("m", "b"), removal("r")}},
	{name: "two moves, there and back", mode: Everywhere, peers: 2, committed: "p", plans: []plan{move("m", "b"), move("n", "a")}},
	{name: "a chain, a sweep", mode: Everywhere, peers: 3, committed: "p", sweepers: 1, plans: []plan{move("m", "b"), after(1, move("n", "c"))}},
	{name: "add, move, a late create", mode: Everywhere, peers: 2, duplicates: 1, plans: []plan{add("x", "a", 1, "p"), move("m", "b")}},
	{name: "add, move, timeout, crash", mode: Everywhere, peers: 2, timeouts: 1, crashes: 1, plans: []plan{add("x", "a", 1, "p"), move("m", "b")}},
	{name: "add, move, removal", mode: Everywhere, peers: 2, plans: []plan{add("x", "a", 1, "p"), move("m", "b"), removal("r")}},
	{name: "move to where a late create has the name", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, duplicates: 1, deletes: 1, plans: []plan{add("z", "b", 1, "q"), move("m", "b")}},
	{name: "homes that no replica names, removal, sweep", mode: Everywhere, peers: 3, committed: "p", moved: "bc", sweepers: 1, plans: []plan{removal("r")}},
	{name: "homes that no replica names, update, sweep", mode: Everywhere, peers: 3, committed: "p", moved: "bc", sweepers: 1, plans: []plan{update("x", "q")}},
	{name: "homes that no replica names, move, sweep", mode: Everywhere, peers: 3, committed: "p", moved: "bc", sweepers: 1, plans: []plan{move("m", "a")}},
	{name: "move, a join", mode: Everywhere, peers: 3, ring: 2, changes: []ChangeOperation{joinC}, committed: "p", plans: []plan{move("m", "b")}},
	{name: "move back, a join", mode: Everywhere, peers: 3, ring: 2, changes: []ChangeOperation{joinC}, committed: "p", plans: []plan{move("m", "b"), after(1, move("n", "a"))}},
	{name: "move, removal, a join", mode: Everywhere, peers: 3, ring: 2, changes: []ChangeOperation{joinC}, committed: "p", plans: []plan{move("m", "b"), after(1, removal("r"))}},
}
