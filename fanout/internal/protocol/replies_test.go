// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// repliesSmall are configurations in which each reply is a step of its own. A reply may arrive
// after other requests of the same process were applied, so that a process learns of events in
// another order than they happened. Every run of the tests explores them.
var repliesSmall = []config{
	{name: "add and remove, answers apart", peers: 2, sweepers: 1, replies: true, plans: []plan{add("x", "a", 1, "p"), removal("r")}},
	{name: "3 peers, account, sweep, answers apart", mode: Everywhere, peers: 3, sweepers: 1, replies: true, plans: []plan{add("x", "a", 1, "p")}},
	{name: "update and remove, answers apart", mode: Everywhere, peers: 2, committed: "p", replies: true, plans: []plan{update("x", "q"), removal("r")}},
	{name: "move and update, answers apart", mode: Everywhere, peers: 2, committed: "p", replies: true, plans: []plan{move("m", "b"), update("x", "q")}},
	{name: "join, an add, answers apart", peers: 3, ring: 2, replies: true, changes: changes(joinC), plans: []plan{known(2, add("x", "b", 1, "p"))}},
	{name: "join, removal, answers apart", mode: Everywhere, peers: 3, ring: 2, replies: true, committed: "p", changes: changes(joinC), plans: []plan{removal("r")}},
}

// repliesDeep are configurations like those in repliesSmall, whose exploration takes longer.
var repliesDeep = []config{
	{name: "two adds, two targets, answers apart", peers: 2, sweepers: 1, replies: true, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
	{name: "two adds, a timeout, answers apart", peers: 2, timeouts: 1, replies: true, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
	{name: "3 peers, two adds, answers apart", peers: 3, replies: true, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
	{name: "3 peers, update, sweep, answers apart", mode: Everywhere, peers: 3, committed: "p", sweepers: 1, replies: true, plans: []plan{update("x", "q")}},
	{name: "removal, two sweeps, answers apart", mode: Everywhere, peers: 2, committed: "p", sweepers: 2, replies: true, plans: []plan{removal("r")}},
	{name: "update, removal, timeout, crash, answers apart", mode: Everywhere, peers: 2, committed: "p", timeouts: 1, crashes: 1, replies: true,
		plans: []plan{update("x", "q"), removal("r")}},
	{name: "3 peers, update, removal, sweep, answers apart", mode: Everywhere, peers: 3, committed: "p", sweepers: 1, replies: true,
		plans: []plan{update("x", "q"), removal("r")}},
	{name: "join, an add, a sweep, a crash, answers apart", peers: 3, ring: 2, sweepers: 1, crashes: 1, replies: true, changes: changes(joinC),
		plans: []plan{known(2, add("x", "b", 1, "p"))}},
}
