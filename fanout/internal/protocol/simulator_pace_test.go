// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "math/rand/v2"

// pace is the speed of the processes and of their clocks, and the length of each process's pause.
type pace struct {
	r       *rand.Rand
	speed   []int
	clock   []int
	pauses  []int // the step until which each process pauses
	left    int
	at      int
	weights []int
}

func newPace(r *rand.Rand, cfg *config) *pace {
	p := &pace{r: r, left: 60 + r.IntN(80*len(cfg.plans))}
	if cfg.loss.peer != "" || len(cfg.changes) > 0 && cfg.restored != "" {
		p.left += 400 // changes take long
	}
	for range len(cfg.plans) + cfg.sweepers {
		p.speed = append(p.speed, []int{1, 4, 4, 16}[r.IntN(4)])
		p.clock = append(p.clock, []int{0, 1, 4, 4, 16}[r.IntN(5)])
		p.pauses = append(p.pauses, 0)
	}
	return p
}

// next draws the next action in w.
func (p *pace) next(w *world) (action, bool) {
	if p.at++; p.at > p.left {
		return action{}, false
	}
	if i := p.r.IntN(len(w.store.cells)); p.r.IntN(12) == 0 && w.sights(i) {
		return action{kind: actRead, a: uint8(i)}, true
	}
	if p.r.IntN(50) == 0 {
		p.pauses[p.r.IntN(len(p.pauses))] = p.at + 10 + p.r.IntN(150)
	}
	acts := w.enabled()
	p.weights = p.weights[:0]
	sum := 0
	for _, a := range acts {
		n := p.weight(w, a)
		p.weights = append(p.weights, n)
		sum += n
	}
	if sum == 0 {
		return action{}, false
	}
	n := p.r.IntN(sum)
	for i, a := range acts {
		if n -= p.weights[i]; n < 0 {
			return a, true
		}
	}
	return action{}, false
}

// weight returns the relative probability of a. A process that pauses does not even get
// replies, but its requests arrive.
func (p *pace) weight(w *world, a action) int {
	still := func(i int) bool { return i < len(p.pauses) && p.pauses[i] > p.at }
	speed := func(of []int, i int) int {
		if i < len(of) {
			return of[i]
		}
		return 4
	}
	switch a.kind {
	case actDeliver, actApply:
		m := &w.net[a.a]
		switch {
		case m.orphan:
			return 4
		case a.kind == actApply:
			return 4 * speed(p.speed, m.proc)
		case still(m.proc):
			return 0
		case m.cmd.Verb == Sleep:
			return 4 * speed(p.clock, m.proc)
		}
		return 8 * speed(p.speed, m.proc)
	case actTimeout, actUnsent, actDeny:
		if still(w.net[a.a].proc) {
			return 0
		}
		return 2
	case actBegin, actRetry, actSweep, actLook, actExpire:
		if still(int(a.a)) {
			return 0
		}
		return 4
	case actBump, actDelete, actHold, actCrash, actBackup, actRestore, actNotice:
		return 1
	default:
		return 4
	}
}
