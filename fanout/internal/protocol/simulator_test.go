// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// actRead is a look-up in peer a. Only the simulator has this step.
const actRead kind = 255

// event is one step of a schedule. It names its process, peer and message instead of their
// positions, so that a schedule stays valid when other steps are left out.
type event struct {
	kind          kind
	a, b          int // a process or a peer, and a peer
	life, strand  int // of a message
	seq           int
	orphan, twice bool
	verb          Verb
	peer          string
}

// like reports whether e and o are the same except for the numbers of lives, strands and
// commands, which change when other steps are left out.
func (e event) like(o event) bool {
	o.life, o.strand, o.seq = e.life, e.strand, e.seq
	return e == o
}

// schedule is a configuration and its events. After the events everything runs to its end without
// further faults.
type schedule struct {
	cfg    config
	events []event
}

// named returns the event for action a in w.
func (w *world) named(a action) event {
	s := event{kind: a.kind, a: int(a.a), b: int(a.b)}
	switch a.kind {
	case actDeliver, actTimeout, actUnsent, actDeny, actDouble, actApply:
		m := &w.net[a.a]
		s.a, s.life, s.strand, s.seq, s.orphan, s.twice = m.proc, m.life, m.cmd.Strand, m.cmd.Seq, m.orphan, m.double
		s.verb, s.peer = m.cmd.Verb, m.cmd.Peer
	}
	return s
}

// simulate runs a schedule: next returns the next action, or false at the end. It returns
// the violation, or "", and the events until then.
func simulate(cfg *config, tell func(string, store), next func(*world) (action, bool)) (string, []event) {
	w := newWorld(cfg)
	w.split, w.alone, w.tell = true, true, tell
	w.history = &history{of: map[string]*deed{}, yielded: map[string]*deed{}}
	if cfg.committed != "" {
		o := Operation{ID: "o", Action: Add, Mode: cfg.mode, Target: "a", Digest: "d" + cfg.committed}
		w.history.begins(o)
		w.history.ends(o, Result{Ending: Done})
	}
	var events []event
	w.history.watch(w.store)
	for {
		a, ok := next(w)
		if !ok {
			break
		}
		what := ""
		if tell != nil {
			what = w.describe(a)
		}
		events = append(events, w.named(a))
		if a.kind == actDouble || a.kind == actTimeout && w.net[a.a].cmd.Verb == Create {
			w.history.strays(w.procs[w.net[a.a].proc].op.ID)
		}
		if a.kind == actRead {
			w.look(int(a.a))
		} else {
			w.do(a)
		}
		if tell != nil {
			tell(what, w.store)
		}
		if s := w.check(); s != "" {
			return s, events
		}
	}
	if tell != nil {
		tell("everything runs on without further faults", w.store)
	}
	if s := w.complete(); s != "" {
		return s, events
	}
	if cfg.loss.peer != "" || cfg.restored != "" {
		// An object that is lost with a peer may return with that peer, so it does not fit into one
		// order of operations.
		return "", events
	}
	if cfg.personal() {
		// Edits by persons do not fit into one order of operations.
		return "", events
	}
	return w.history.check(), events
}

// drawn returns the configuration of a seed, and the source of the other random choices.
func drawn(seed uint64) (config, *rand.Rand) {
	r := rand.New(rand.NewPCG(seed, 1))
	cfg := draw(r)
	drawLoss(rand.New(rand.NewPCG(seed, 2)), &cfg)
	drawTakeovers(rand.New(rand.NewPCG(seed, 3)), &cfg)
	drawRestore(rand.New(rand.NewPCG(seed, 4)), &cfg)
	return cfg, r
}

// play runs the random schedule of a seed.
func play(seed uint64) (string, schedule) {
	cfg, r := drawn(seed)
	s := schedule{cfg: cfg}
	p := newPace(r, &s.cfg)
	what, events := simulate(&s.cfg, nil, p.next)
	s.events = events
	return what, s
}

// replay runs a schedule. It leaves out events that cannot happen.
func (s *schedule) replay(tell func(string, store)) (string, []event) {
	at := 0
	return simulate(&s.cfg, tell, func(w *world) (action, bool) {
		for ; at < len(s.events); at++ {
			if a, ok := w.find(s.events[at]); ok {
				at++
				return a, true
			}
		}
		return action{}, false
	})
}

// find returns the action that e names, if it can happen in w.
func (w *world) find(e event) (action, bool) {
	if e.kind == actRead {
		return action{kind: actRead, a: uint8(e.a)}, e.a < len(w.store.cells) && w.sights(e.a)
	}
	acts := w.enabled()
	for _, a := range acts {
		if a.kind == e.kind && w.named(a) == e {
			return a, true
		}
	}
	for _, a := range acts {
		if a.kind == e.kind && w.named(a).like(e) {
			return a, true
		}
	}
	return action{}, false
}

// String returns the trace of a schedule.
func (s *schedule) String() string {
	var b strings.Builder
	n, last := 0, ""
	s.replay(func(what string, at store) {
		n++
		peers := at.String()
		if peers == last {
			peers = ""
		} else {
			last = peers
		}
		fmt.Fprintf(&b, "%4d %-*s %s\n", n, traceWidth, what, peers)
	})
	return b.String()
}
