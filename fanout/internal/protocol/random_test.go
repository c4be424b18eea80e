// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// draw makes up a configuration with everything that may go wrong.
func draw(r *rand.Rand) config {
	cfg := config{
		name:  "random",
		mode:  Mode(r.IntN(2)),
		peers: 2 + r.IntN(3),
		lease: []int{0, 1, 3, live}[r.IntN(4)],
	}
	if r.IntN(2) == 0 {
		cfg.committed = "p"
	}
	drawChanges(r, &cfg)
	ids := "xyzw"
	for i := range 2 + r.IntN(3) {
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
	return cfg
}

// play runs one random schedule. It returns what went wrong and, if told to
// tell, how.
func play(seed uint64, tell bool) (string, string) {
	r := rand.New(rand.NewPCG(seed, 1))
	cfg := draw(r)
	w := newWorld(&cfg)
	w.split, w.alone = true, true
	var told strings.Builder
	note := func(what string, s store) { fmt.Fprintf(&told, "%s\n        %s\n", what, s) }
	if tell {
		w.tell = note
	}
	for range 60 + r.IntN(200) {
		acts := w.enabled()
		if len(acts) == 0 {
			break
		}
		// Progress three times out of four, so that faults come late as well.
		a := acts[r.IntN(len(acts))]
		for n := 0; n < 3 && a.kind != actDeliver && a.kind != actBegin && a.kind != actApply; n++ {
			a = acts[r.IntN(len(acts))]
		}
		what := ""
		if tell {
			what = w.describe(a)
		}
		w.do(a)
		if tell {
			note(what, w.store)
		}
		if s := w.check(); s != "" {
			return s, told.String()
		}
	}
	if tell {
		fmt.Fprintf(&told, "then everything runs on without further faults\n")
	}
	return w.complete(), told.String()
}

func TestRandom(t *testing.T) {
	if s := os.Getenv("ATOLL_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if s, how := play(seed, true); s != "" {
			t.Fatalf("%s\n%s", s, how)
		}
		return
	}
	runs, base := 4000, uint64(0)
	if n, err := strconv.Atoi(os.Getenv("ATOLL_RUNS")); err == nil {
		runs, base = n, rand.Uint64()>>1
	}
	for i := range runs {
		seed := base + uint64(i)
		if s, _ := play(seed, false); s != "" {
			_, how := play(seed, true)
			t.Fatalf("%s (ATOLL_SEED=%d)\n%s", s, seed, how)
		}
	}
}
