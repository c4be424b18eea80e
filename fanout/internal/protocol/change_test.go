// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// changes lists the changes of a configuration.
func changes(ops ...ChangeOperation) []ChangeOperation { return ops }

var (
	joinC   = change("j", Join, "c")
	joinD   = change("k", Join, "d")
	leaveC  = change("l", Leave, "c")
	leaveB  = change("l", Leave, "b")
	leaveA  = change("l", Leave, "a")
	forceC  = change("f", Force, "c")
	forceB  = change("f", Force, "b")
	returnB = change("h", Return, "b")
	returnC = change("h", Return, "c")
)

// evacuations are configurations in which the peer of a home (the primary of an Everywhere object)
// leaves, or a home moves to a leaving peer.
var evacuations = []config{
	{name: "the home leaves", mode: Everywhere, peers: 3, committed: "p", allSucceed: true, changes: changes(leaveA)},
	{name: "the home leaves, a crash", mode: Everywhere, peers: 2, committed: "p", crashes: 1, changes: changes(leaveA)},
	{name: "the home leaves, an update", mode: Everywhere, peers: 2, committed: "p", allSucceed: true, changes: changes(leaveA), plans: []plan{update("x", "q")}},
	{name: "the home leaves, removal", mode: Everywhere, peers: 2, committed: "p", changes: changes(leaveA), plans: []plan{removal("r")}},
	{name: "the home leaves, a sweep", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, changes: changes(leaveA)},
	{name: "leave B, a move to it", mode: Everywhere, peers: 2, committed: "p", changes: changes(leaveB), plans: []plan{move("m", "b")}},
}

// evacuationsDeep are evacuations whose exploration takes longer.
var evacuationsDeep = []config{
	{name: "9c: move, the home leaves, update, removal", mode: Everywhere, peers: 2, committed: "p", changes: changes(leaveA), plans: []plan{move("m", "b"), update("x", "q"), removal("r")}},
	{name: "the home leaves, update, removal", mode: Everywhere, peers: 3, committed: "p", changes: changes(leaveA), plans: []plan{update("x", "q"), removal("r")}},
	{name: "the home leaves, update, crash, helper", mode: Everywhere, peers: 2, committed: "p", crashes: 1, helpers: 1, changes: changes(leaveA), plans: []plan{update("x", "q")}},
	{name: "the home leaves, removal, crash, helper", mode: Everywhere, peers: 2, committed: "p", crashes: 1, helpers: 1, changes: changes(leaveA), plans: []plan{removal("r")}},
	{name: "the home leaves, update, sweep", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, changes: changes(leaveA), plans: []plan{update("x", "q")}},
	{name: "the home leaves, timeout, crash, helper", mode: Everywhere, peers: 2, committed: "p", timeouts: 1, crashes: 1, helpers: 1, changes: changes(leaveA)},
	{name: "leave B, a move to it, timeout, crash", mode: Everywhere, peers: 2, committed: "p", timeouts: 1, crashes: 1, changes: changes(leaveB), plans: []plan{move("m", "b")}},
	{name: "leave B, moves there and back", mode: Everywhere, peers: 2, committed: "p", changes: changes(leaveB), plans: []plan{move("m", "b"), after(1, move("n", "a"))}},
	{name: "leave C, a move to it", mode: Everywhere, peers: 3, committed: "p", changes: changes(leaveC), plans: []plan{move("m", "c")}},
	{name: "leave C, a move to it, update", mode: Everywhere, peers: 3, committed: "p", changes: changes(leaveC), plans: []plan{move("m", "c"), update("x", "q")}},
}

// smallChanges are configurations with changes of the membership. Every run of the tests explores
// them.
var smallChanges = []config{
	{name: "join C", peers: 3, ring: 2, changes: changes(joinC), crashes: 1, helpers: 1},
	{name: "join C, committed, crash", peers: 3, ring: 2, committed: "p", changes: changes(joinC), crashes: 1},
	{name: "join C, committed account, crash", mode: Everywhere, peers: 3, ring: 2, committed: "p", changes: changes(joinC), crashes: 1},
	{name: "join C, timeout", peers: 3, ring: 2, committed: "p", changes: changes(joinC), timeouts: 1},
	{name: "leave C, crash", peers: 3, committed: "p", changes: changes(leaveC), crashes: 1, helpers: 1},
	{name: "leave C, a helper that has read C before it was marked", peers: 3, committed: "p", changes: changes(leaveC), helpers: 1, reads: true},
	{name: "force C, crash", peers: 3, committed: "p", committedAt: 3, changes: changes(forceC), crashes: 1},
	{name: "C comes back, crash", peers: 3, committed: "p", changes: changes(returnC), crashes: 1},
	{name: "C comes back as the owner, crash", peers: 3, committed: "p", committedAt: 3, changes: changes(returnC), crashes: 1},
	{name: "join C, leave C, crash, nothing to guard", peers: 3, ring: 2, crashes: 1, changes: changes(joinC, leaveC)},
	{name: "7g force B, comeback", peers: 2, committed: "p", committedAt: 2, changes: changes(forceB, returnB)},
	{name: "leave A is refused", peers: 3, committed: "p", changes: changes(leaveA), crashes: 1},
	{name: "leave A", peers: 3, changes: changes(leaveA), crashes: 1, helpers: 1},
}

// deepChanges are configurations with changes of the membership that take longer;
// ATOLL_EXPLORE=deep runs them.
var deepChanges = []config{
	{name: "2f join C, update, removal", mode: Everywhere, peers: 3, ring: 2, committed: "p", changes: changes(joinC), plans: []plan{update("x", "q"), removal("r")}},
	{name: "7g force B, comeback, X@B", peers: 2, lease: live, sweepers: 1, givenUp: true, changes: changes(forceB, returnB), plans: []plan{add("x", "b", 1, "p")}},
	{name: "7a join C, X@A, Y@C", peers: 3, ring: 2, lease: live, changes: changes(joinC), plans: []plan{known(2, add("x", "a", 1, "p")), add("y", "c", 2, "q")}},
	{name: "7d leave C, X@C, Y@A", peers: 3, lease: live, changes: changes(leaveC), plans: []plan{add("x", "c", 1, "p"), add("y", "a", 2, "q")}},
	{name: "7f force C, X@C, Y@A", peers: 3, lease: live, changes: changes(forceC), plans: []plan{add("x", "c", 1, "p"), known(2, add("y", "a", 2, "q"))}},
	{name: "join C, leave A", peers: 3, ring: 2, changes: changes(joinC, leaveA)},
	{name: "join C and D", peers: 4, ring: 2, changes: changes(joinC, joinD)},
	{name: "7a join C, X@A, Y@C, sweep", peers: 3, ring: 2, sweepers: 1, changes: changes(joinC), plans: []plan{known(2, add("x", "a", 1, "p")), add("y", "c", 2, "q")}},
	{name: "7g force C, comeback, X@C", peers: 3, lease: live, changes: changes(forceC, returnC), plans: []plan{add("x", "c", 1, "p")}},
	{name: "7g force C, comeback, X@C, Y@A", peers: 3, lease: live, changes: changes(forceC, returnC), plans: []plan{add("x", "c", 1, "p"), known(2, add("y", "a", 2, "q"))}},
	{name: "force C, comeback, owner, Y@A", peers: 3, committed: "p", committedAt: 3, lease: live, changes: changes(forceC, returnC), plans: []plan{known(2, add("y", "a", 2, "q"))}},
	{name: "7h leave C, account, removal, sweep", mode: Everywhere, peers: 3, committed: "p", sweepers: 1, changes: changes(leaveC), plans: []plan{removal("r")}},
	{name: "join C, add of an account", mode: Everywhere, peers: 3, ring: 2, changes: changes(joinC), plans: []plan{known(2, add("x", "a", 1, "p"))}},
	{name: "join C, a person at A, X@C", peers: 3, ring: 2, strangers: "a", lease: live, changes: changes(joinC), plans: []plan{add("x", "c", 1, "p")}},
	{name: "join C, a person at C, X@A", peers: 3, ring: 2, strangers: "c", lease: live, deletes: 1, changes: changes(joinC), plans: []plan{known(2, add("x", "a", 1, "p"))}},
	{name: "two drivers of an empty join, timeout, crash", peers: 3, ring: 2, timeouts: 1, crashes: 1, helpers: 1, reads: true, changes: changes(joinC)},
	{name: "two drivers of a join, timeout, crash", peers: 3, ring: 2, committed: "p", timeouts: 1, crashes: 1, helpers: 1, reads: true, changes: changes(joinC)},
	{name: "two drivers of a leave, timeout, crash", peers: 3, committed: "p", timeouts: 1, crashes: 1, helpers: 1, changes: changes(leaveC)},
	{name: "join C twice", peers: 3, ring: 2, committed: "p", changes: changes(joinC, change("k", Join, "c"))},
	{name: "join C, leave C", peers: 3, ring: 2, committed: "p", crashes: 1, changes: changes(joinC, leaveC)},
	{name: "7b joins C and D, X@A, Y@C", peers: 4, ring: 2, changes: changes(joinC, joinD), plans: []plan{known(2, add("x", "a", 1, "p")), known(3, add("y", "c", 2, "q"))}},
	{name: "7b joins C and D, X@C, Y@D", peers: 4, ring: 2, changes: changes(joinC, joinD), plans: []plan{known(3, add("x", "c", 1, "p")), add("y", "d", 2, "q")}},
	{name: "7e join D, leave C, X@C, Y@D", peers: 4, ring: 3, changes: changes(joinD, leaveC), plans: []plan{known(3, add("x", "c", 1, "p")), add("y", "d", 2, "q")}},
}
