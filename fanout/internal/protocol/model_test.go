// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

func add(id string, target string, start int64, payload string) plan {
	return plan{op: Operation{ID: id, Action: Add, Target: target, Start: start, Payload: payload}}
}

func update(id, payload string) plan {
	return plan{op: Operation{ID: id, Action: Update, Start: 1, Payload: payload}}
}

func removal(id string) plan {
	return plan{op: Operation{ID: id, Action: Remove, Start: 1}}
}

// known returns p with only the first n peers configured.
func known(n int, p plan) plan {
	p.peers = n
	return p
}

func retrying(p plan) plan {
	p.retry = true
	return p
}

// live is a lease that never runs out during an exploration.
const live = 1 << 20

var small = []config{
	{name: "add", peers: 2, sweepers: 1, timeouts: 1, crashes: 1, plans: []plan{add("x", "a", 1, "p")}},
	{name: "two adds, two targets", peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
	{name: "two adds, one target", peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "a", 2, "q")}},
	{name: "two adds, a timeout", peers: 2, timeouts: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
	{name: "two adds, a crash", peers: 2, crashes: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
	{name: "add and remove", peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p"), removal("r")}},
	{name: "remove, a timeout and a crash", peers: 2, committed: "p", timeouts: 1, crashes: 1, plans: []plan{removal("r")}},
	{name: "two live adds, two targets", peers: 2, lease: live, exactlyOne: true,
		plans: []plan{retrying(add("x", "a", 1, "p")), retrying(add("y", "b", 2, "q"))}},
	{name: "two live adds, one target", peers: 2, lease: live, exactlyOne: true,
		plans: []plan{retrying(add("x", "a", 1, "p")), retrying(add("y", "a", 2, "q"))}},
	{name: "account", mode: Everywhere, peers: 2, sweepers: 1, timeouts: 1, plans: []plan{add("x", "a", 1, "p")}},
	{name: "two accounts", mode: Everywhere, peers: 2, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
	{name: "two live accounts, same content", mode: Everywhere, peers: 2, lease: live, allSucceed: true,
		plans: []plan{retrying(add("x", "a", 1, "p")), retrying(add("y", "b", 2, "p"))}},
	{name: "two live accounts, other content", mode: Everywhere, peers: 2, lease: live, exactlyOne: true,
		plans: []plan{retrying(add("x", "a", 1, "p")), retrying(add("y", "b", 2, "q"))}},
	{name: "two updates", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, plans: []plan{update("x", "q"), update("y", "s")}},
	{name: "update and remove", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, plans: []plan{update("x", "q"), removal("r")}},
	{name: "removal, a tenant at home", mode: Everywhere, peers: 2, committed: "p", tenant: 1, moves: 2, timeouts: 1, plans: []plan{removal("r")}},
	{name: "removal, a tenant elsewhere", mode: Everywhere, peers: 2, committed: "p", tenant: 2, moves: 2, sweepers: 1, plans: []plan{removal("r")}},
	{name: "join, an add", peers: 3, ring: 2, changes: []ChangeOperation{change("j", Join, "c")}, sweepers: 1, plans: []plan{known(2, add("x", "b", 1, "p"))}},
	{name: "join, removal", mode: Everywhere, peers: 3, ring: 2, changes: []ChangeOperation{change("j", Join, "c")}, committed: "p", plans: []plan{removal("r")}},
	{name: "two adds, 3 peers", peers: 3, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
}
