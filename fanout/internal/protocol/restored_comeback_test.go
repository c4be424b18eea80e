// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

var returnA = change("h", Return, "a")

// restoredBack are configurations in which a peer is restored from a backup, all processes notice
// this at once, and the peer rejoins.
var restoredBack = []config{
	{name: "A is restored and comes back, owner", peers: 2, committed: "p", restored: "a", detected: true, changes: changes(returnA)},
	{name: "A is restored and comes back, X@A", peers: 2, restored: "a", detected: true, changes: changes(returnA), plans: []plan{add("x", "a", 1, "p")}},
	{name: "B is restored and comes back, owner", peers: 2, committed: "p", restored: "b", detected: true, changes: changes(returnB)},
	{name: "A is restored and comes back, account", mode: Everywhere, peers: 2, committed: "p", restored: "a", detected: true, changes: changes(returnA)},
	{name: "A is restored and comes back, account, update", mode: Everywhere, peers: 2, committed: "p", restored: "a", detected: true, changes: changes(returnA), plans: []plan{update("x", "q")}},
	{name: "B is restored and comes back, account, update", mode: Everywhere, peers: 2, committed: "p", restored: "b", detected: true, changes: changes(returnB), plans: []plan{update("x", "q")}},
	{name: "A is restored and comes back, removal", peers: 2, committed: "p", restored: "a", detected: true, changes: changes(returnA), plans: []plan{removal("r")}},
	{name: "A is restored and comes back, account, removal", mode: Everywhere, peers: 2, committed: "p", restored: "a", detected: true, changes: changes(returnA), plans: []plan{removal("r")}},
	{name: "A is restored and comes back, account added", mode: Everywhere, peers: 2, restored: "a", detected: true, changes: changes(returnA), plans: []plan{add("x", "a", 1, "p")}},
}

// attempted are configurations with operations that sent a commit to a peer which was restored and
// has rejoined since. Such an operation cannot know the result of its commit.
var attempted = []config{
	{name: "A is restored and comes back, X@A, a crash", peers: 2, restored: "a", detected: true, crashes: 1, changes: changes(returnA), plans: []plan{add("x", "a", 1, "p")}},
}

// attemptedDeep are configurations like those in attempted, whose exploration takes longer.
var attemptedDeep = []config{
	{name: "A is restored and comes back, account added, a crash", mode: Everywhere, peers: 2, restored: "a", detected: true, crashes: 1, changes: changes(returnA), plans: []plan{add("x", "a", 1, "p")}},
	{name: "A is restored and comes back, X@A, a timeout, an expiry", peers: 2, restored: "a", detected: true, timeouts: 1, expiries: 1, changes: changes(returnA), plans: []plan{add("x", "a", 1, "p")}},
	{name: "A is restored and comes back, two updates, a crash", mode: Everywhere, peers: 2, committed: "p", restored: "a", detected: true, crashes: 1, changes: changes(returnA), plans: []plan{update("x", "q"), update("y", "s")}},
	{name: "A is restored and comes back, two updates, a timeout, an expiry", mode: Everywhere, peers: 2, committed: "p", restored: "a", detected: true, timeouts: 1, expiries: 1, changes: changes(returnA), plans: []plan{update("x", "q"), update("y", "s")}},
}

// restoredBackDeep are configurations like those in restoredBack, whose exploration takes longer.
var restoredBackDeep = []config{
	{name: "A is restored and comes back, account added, a replica deleted", mode: Everywhere, peers: 3, restored: "a", detected: true, deletes: 1, changes: changes(returnA), plans: []plan{add("x", "a", 1, "p")}},
	{name: "A is restored and comes back, account added, helper", mode: Everywhere, peers: 2, restored: "a", detected: true, helpers: 1, changes: changes(returnA), plans: []plan{add("x", "a", 1, "p")}},
	{name: "A is restored and comes back, X@A, sweep", peers: 2, restored: "a", detected: true, sweepers: 1, changes: changes(returnA), plans: []plan{add("x", "a", 1, "p")}},
	{name: "A is restored and comes back, X@A, Y@B", peers: 2, restored: "a", detected: true, changes: changes(returnA), plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
	{name: "B is restored and comes back, X@A, sweep", peers: 2, restored: "b", detected: true, sweepers: 1, changes: changes(returnB), plans: []plan{add("x", "a", 1, "p")}},
	{name: "A is restored and comes back, removal, sweep", peers: 2, committed: "p", restored: "a", detected: true, sweepers: 1, changes: changes(returnA), plans: []plan{removal("r")}},
	{name: "A is restored and comes back, removal, Y@B", peers: 2, committed: "p", restored: "a", detected: true, changes: changes(returnA), plans: []plan{removal("r"), add("y", "b", 2, "q")}},
	{name: "A is restored and comes back, account, two updates", mode: Everywhere, peers: 2, committed: "p", restored: "a", detected: true, changes: changes(returnA), plans: []plan{update("x", "q"), update("y", "s")}},
	{name: "A is restored and comes back, account, update, removal", mode: Everywhere, peers: 2, committed: "p", restored: "a", detected: true, changes: changes(returnA), plans: []plan{update("x", "q"), removal("r")}},
	{name: "A is restored and comes back, account, 3 peers, update", mode: Everywhere, peers: 3, committed: "p", restored: "a", detected: true, changes: changes(returnA), plans: []plan{update("x", "q")}},
	{name: "A is restored and comes back, removed and added again", peers: 2, committed: "p", restored: "a", detected: true, changes: changes(returnA), plans: []plan{removal("r"), after(1, add("x", "a", 1, "q"))}},
	{name: "A is restored and comes back, account removed and added again", mode: Everywhere, peers: 2, committed: "p", restored: "a", detected: true, changes: changes(returnA), plans: []plan{removal("r"), after(1, add("x", "a", 1, "q"))}},
	{name: "A is restored and comes back, crash, helper", peers: 2, committed: "p", restored: "a", detected: true, crashes: 1, helpers: 1, changes: changes(returnA)},
	{name: "A is restored and comes back, account, crash, helper", mode: Everywhere, peers: 2, committed: "p", restored: "a", detected: true, crashes: 1, helpers: 1, changes: changes(returnA)},
}
