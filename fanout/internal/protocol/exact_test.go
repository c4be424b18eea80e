// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// exact returns removal r, restricted to revision base: it removes no other revision of the object.
func exact(r plan, base int64) plan {
	r.op.Base = base
	return r
}

// present returns cfg with its removals restricted to one resourceVersion: the one that the committed
// object has at the start.
func present(cfg config) config {
	w := newWorld(&cfg)
	for i := range cfg.plans {
		if cfg.plans[i].op.Action == Remove {
			cfg.plans[i].op.Version = w.store.cells[0].obj.RV
		}
	}
	return cfg
}

// exactRemovals are configurations with removals of one revision or one resourceVersion only.
var exactRemovals = []config{
	{name: "update, removal of the first revision", mode: Everywhere, peers: 2, committed: "p", timeouts: 1,
		plans: []plan{update("x", "q"), exact(removal("r"), 1)}},
	{name: "update, removal of the second revision, crash", mode: Everywhere, peers: 2, committed: "p", crashes: 1,
		plans: []plan{update("x", "q"), exact(removal("r"), 2)}},
	{name: "edit, removal of the first revision", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, persons: persons{edits: 1},
		plans: []plan{exact(removal("r"), 1)}},
	present(config{name: "bump, removal of a resourceVersion", peers: 2, committed: "p", sweepers: 1, bumps: 1, timeouts: 1, crashes: 1,
		plans: []plan{removal("r")}}),
	present(config{name: "removal, removal of a resourceVersion, add", peers: 2, committed: "p", timeouts: 1,
		plans: []plan{removal("r"), add("y", "a", 2, "q")}}),
}

// exactRemovalsDeep are larger ones.
var exactRemovalsDeep = []config{
	{name: "update, move, removal of the first revision, timeout", mode: Everywhere, peers: 2, committed: "p", timeouts: 1,
		plans: []plan{update("x", "q"), move("m", "b"), exact(removal("r"), 1)}},
	{name: "update, move, removal of the first revision, crash", mode: Everywhere, peers: 2, committed: "p", crashes: 1,
		plans: []plan{update("x", "q"), move("m", "b"), exact(removal("r"), 1)}},
	{name: "edit, removals of the first revision, timeout, crash", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, timeouts: 1, crashes: 1, persons: persons{edits: 1},
		plans: []plan{exact(removal("r"), 1), removal("s")}},
	present(config{name: "3 peers, bump, removal of a resourceVersion, timeout", peers: 3, committed: "p", sweepers: 1, bumps: 1, timeouts: 1,
		plans: []plan{removal("r")}}),
	present(config{name: "bump, removal of a resourceVersion, kubectl delete, a person's finalizer, expiry", peers: 2, committed: "p", sweepers: 1, bumps: 1, deletes: 1, foreign: 1, expiries: 1,
		plans: []plan{removal("r")}}),
}

// exactMutants break the rule that such a removal removes no other state of the object.
var exactMutants = []broken{
	{rule: "a removal compares the revision", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", plans: []plan{update("x", "q"), exact(removal("r"), 1)},
		mutant: mutant{reply: func(_ *world, p *proc, _ Command, r Reply) Reply {
			if p.op.Action == Remove && p.m != nil {
				p.m.Op.Base = 0
			}
			return r
		}},
	}, want: "removes another state"},
	{rule: "a removal compares the resourceVersion again after a refused attempt", cfg: present(config{
		peers: 2, committed: "p", bumps: 1, plans: []plan{removal("r")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.op.Action == Remove && p.m != nil && c.Verb == Put {
				p.m.Op.Version = ""
			}
			return r
		}},
	}), want: "removes another state"},
}
