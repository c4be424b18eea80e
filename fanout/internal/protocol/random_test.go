// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "math/rand/v2"

// draw returns a random configuration, in which faults of many kinds may occur.
func draw(r *rand.Rand) config {
	cfg := config{
		name:  "random",
		mode:  Mode(r.IntN(2)),
		peers: 2 + r.IntN(4),
		lease: []int{0, 1, 3, live}[r.IntN(4)],
	}
	if r.IntN(2) == 0 {
		cfg.committed = "p"
	}
	drawChanges(r, &cfg)
	ids, last := "xyzwvutsrq", map[int]int{}
	coordinators := 2 + r.IntN(3)
	for i := range coordinators + r.IntN(5) {
		id, payload := ids[i:i+1], []string{"q", "s"}[r.IntN(2)]
		var p plan
		switch n := r.IntN(5); {
		case n == 4 && cfg.mode == Everywhere:
			p = move(id, peerName(r.IntN(cfg.peers)))
		case n == 0:
			p = removal(id)
		case n == 1 && cfg.mode == Everywhere:
			p = update(id, payload)
		default:
			p = retrying(add(id, peerName(r.IntN(cfg.peers)), int64(r.IntN(3)), payload))
		}
		// A coordinator's clock may be far off.
		p.op.Start += int64(i%coordinators) * int64(r.IntN(3)-1) * 1000
		p.after = last[i%coordinators]
		last[i%coordinators] = i + 1
		p.op.Patience = Patience(r.IntN(3))
		if cfg.ring > 0 && r.IntN(2) == 0 {
			p.peers = cfg.ring
			p.op.Target = peerName(r.IntN(p.peers))
		}
		cfg.plans = append(cfg.plans, p)
	}
	if cfg.committed == "" && len(cfg.changes) == 0 && r.IntN(6) == 0 {
		cfg.strangers = peerName(r.IntN(cfg.peers))
	}
	some := func(n int) int { return max(0, r.IntN(2*n+1)-n) }
	cfg.sweepers = 1 + r.IntN(2)
	cfg.timeouts, cfg.unsent, cfg.crashes, cfg.duplicates = some(4), some(3), some(3), some(2)
	cfg.denials = some(2)
	if cfg.mode == Everywhere && r.IntN(3) == 0 {
		cfg.tenant, cfg.moves = 1+r.IntN(cfg.peers), 2
	}
	cfg.expiries, cfg.bumps, cfg.deletes, cfg.foreign = some(2), some(2), some(2), some(2)
	drawCentral(r, &cfg)
	drawPersons(r, &cfg)
	return cfg
}
