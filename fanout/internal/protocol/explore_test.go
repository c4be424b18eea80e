// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// node records how a state was first reached.
type node struct {
	parent int32
	act    action
}

// exploration is a breadth-first search through all interleavings of a
// configuration, so that the first counterexample is a shortest one.
type exploration struct {
	cfg   config
	nodes []node
	seen  map[uint64]int32
	rests map[uint64]string // results of settle, by the hash of the state
	k     keyer
	limit int
	every int // one of this many states is run to its end; 0: none
	graph *graph
	hold  int // how many states of a level are kept; the others are rebuilt; 0: all
	eager bool
	again replay

	states, transitions, quiet int

	// The exploration stops at limit states: then cut is true, and every schedule of at most
	// depth steps was tested.
	cut   bool
	depth int
}

// entry is a state to explore. An entry without a world is rebuilt from its actions.
type entry struct {
	w  *world
	at int32
}

// explore returns the trace of a shortest counterexample, or "".
func (e *exploration) explore() string {
	e.seen = map[uint64]int32{}
	e.rests = map[uint64]string{}
	if e.limit == 0 {
		e.limit = 4_000_000
	}
	first := newWorld(&e.cfg)
	e.nodes = append(e.nodes, node{parent: -1})
	e.seen[first.key(&e.k)] = 0
	frontier := []entry{{first, 0}}
	for ; len(frontier) > 0 && !e.cut; e.depth++ {
		var next []entry
		for n, f := range frontier {
			frontier[n].w = nil
			if f.w == nil {
				f.w = e.again.world(e, f.at)
			}
			if s := e.look(f); s != "" {
				return e.trace(f.at, s)
			}
			for _, a := range e.enabled(f.w) {
				e.transitions++
				w := f.w.clone()
				w.do(a)
				if s := w.check(); s != "" {
					e.nodes = append(e.nodes, node{f.at, a})
					return e.trace(int32(len(e.nodes)-1), s)
				}
				h := w.key(&e.k)
				to, ok := e.seen[h]
				switch {
				case ok:
				case len(e.nodes) >= e.limit:
					e.cut = true
					continue
				default:
					to = int32(len(e.nodes))
					e.seen[h] = to
					e.nodes = append(e.nodes, node{f.at, a})
					if e.hold > 0 && len(next) >= e.hold {
						w = nil
					}
					next = append(next, entry{w, to})
				}
				e.graph.edge(to)
			}
		}
		frontier = next
	}
	return ""
}

// look tests a state. If it is at rest (no process can continue), look also tests the state that
// recoveries and sweeps lead to.
func (e *exploration) look(f entry) string {
	e.states++
	resting := f.w.rest()
	if resting {
		if s := e.settle(f.w); s != "" {
			return s
		}
	}
	e.graph.node(f.at, resting && f.w.calm())
	if e.every > 0 && f.at%int32(e.every) == 0 {
		return f.w.complete()
	}
	return ""
}

// settle recovers and sweeps a state at rest, and tests the outcome (see world.settle). The result
// depends only on the peers and on the operations to recover, so it is computed once for each
// combination.
func (e *exploration) settle(w *world) string {
	e.quiet++
	e.k.reset()
	e.k.cells(w.store.cells)
	e.k.records(w.store.records)
	w.keySets(&e.k)
	for _, p := range w.procs {
		e.k.n(int(p.state))
		e.k.s(string(p.result.Ending))
		if w.cfg.restored != "" {
			e.k.s(string(p.result.Reason))
			e.k.b(p.result.Durable, p.overtaken)
			e.k.n(int(p.result.Revision))
			e.k.ref(p.result.Primary)
		}
		if p.state == crashed {
			e.k.lives(p.op.Epochs)
			e.k.record(p.record)
		}
	}
	for _, o := range w.denied {
		e.k.s(o)
	}
	for _, o := range w.committed {
		e.k.s(o)
	}
	e.k.b(w.restoring.over, w.restoring.noticed, w.restoring.quarantinedSince, w.restoring.back)
	for _, o := range w.dropped {
		e.k.s(o)
	}
	e.k.lodger(w.lodger)
	h := maphash.Bytes(keySeed, e.k.buf)
	s, ok := e.rests[h]
	if !ok {
		s = w.settle()
		e.rests[h] = s
	}
	return s
}

// complete runs a state to its end without further faults and tests that it comes to rest.
func (w *world) complete() string {
	w = w.clone()
	for i := range w.procs {
		w.own(i)
	}
	w.alone = true
	w.tenant = outside
	if s := w.evict((*world).complete); s != "" {
		return s
	}
	w.crashes, w.timeouts, w.unsent, w.denials, w.expiries = 0, 0, 0, 0, 0
	w.astray.now, w.astray.over = false, true
	for i := range w.store.cells {
		w.unhold(i)
	}
	for n := 0; n < 40; n++ {
		w.concludeLoss()
		w.concludeRestore()
		for m := 0; len(w.net) > 0; m++ {
			if m > 400 {
				// The deadline ends two operations that wait for each other without a lease.
				for i, p := range w.procs {
					if p.m != nil {
						w.run(i, p.m.Expire())
					}
					if p.change != nil && p.change.m != nil {
						w.runChange(i, p.change.m.Expire())
					}
				}
			}
			if m > 4000 {
				return "L1: it finds no end"
			}
			if w.tell != nil {
				w.tell(w.describe(action{kind: actDeliver}), w.store)
			}
			w.deliver(0)
			if s := w.check(); s != "" {
				return s
			}
		}
		if w.rest() {
			return w.settle()
		}
		for i, p := range w.procs {
			switch {
			case (p.change != nil && p.change.m != nil || p.m != nil) && len(w.net) > 0:
				// The process has just begun and waits for its replies.
			case p.change != nil && p.change.m != nil:
				return "L1: nothing is on its way and " + p.change.op.ID + " is not over"
			case p.change != nil:
				if !p.change.helper && (p.state == idle || p.state == crashed && !p.change.result.Keep) && (p.state == crashed || w.due(p)) {
					w.beginChange(i)
				}
			case p.m != nil:
				return "L1: nothing is on its way and " + p.op.ID + " is not over"
			case p.state == idle && i < len(w.cfg.plans):
				w.do(action{actBegin, uint8(i), 0})
			case (p.state == waiting || p.state == crashed && p.result.Ending == InDoubt) && w.rivalPending(p):
				// The sweep watches the rival until the rival's lease has expired.
				w.procs = append(w.procs, &proc{sweep: true})
				w.sweepAt(len(w.procs)-1, w.store.index(p.result.HolderAt), min(1, w.cfg.lease))
			case p.state == crashed:
				p.configure()
				w.do(action{actRecover, uint8(i), 0})
			case p.state == waiting:
				w.do(action{actRetry, uint8(i), 0})
			}
		}
	}
	return "L1: it does not come to rest"
}

// onward returns the steps in which the state at node n continues without further faults.
func (e *exploration) onward(n int32) string {
	var acts []action
	for ; n > 0; n = e.nodes[n].parent {
		acts = append(acts, e.nodes[n].act)
	}
	w := newWorld(&e.cfg)
	w.key(&e.k)
	for i := len(acts) - 1; i >= 0; i-- {
		w = w.clone()
		w.do(acts[i])
		w.key(&e.k)
	}
	var out strings.Builder
	w.tell = func(what string, s store) { fmt.Fprintf(&out, "     > %s\n        %s\n", what, s) }
	var s string
	if w.rest() {
		s = w.settle()
	}
	if s == "" {
		s = w.complete()
	}
	return out.String() + s
}

// trace returns the steps that lead to the state at node n.
func (e *exploration) trace(n int32, what string) string {
	last := n
	var acts []action
	for ; n > 0; n = e.nodes[n].parent {
		acts = append(acts, e.nodes[n].act)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s, after %d steps of %q:\n", what, len(acts), e.cfg.name)
	w := newWorld(&e.cfg)
	w.key(&e.k)
	fmt.Fprintf(&out, "   0 %-*s %s\n", traceWidth, "", w.store)
	for i := len(acts) - 1; i >= 0; i-- {
		said := w.describe(acts[i])
		w = w.clone()
		w.do(acts[i])
		w.key(&e.k)
		fmt.Fprintf(&out, "%4d %-*s %s", len(acts)-i, traceWidth, said, w.store)
		for _, p := range w.procs {
			if p.result.Ending != "" && p.m == nil {
				fmt.Fprintf(&out, "  [%s %s %s]", p.op.ID, p.result.Ending, p.result.Reason)
			}
		}
		out.WriteByte('\n')
	}
	if s := w.check(); s == "" {
		out.WriteString(e.onward(last))
	}
	return out.String()
}
