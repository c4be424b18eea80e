// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"os"
	"testing"
)

// changes are the changes of a configuration.
func changes(ops ...ChangeOperation) []ChangeOperation { return ops }

var (
	joinC  = change("j", Join, "c")
	joinD  = change("k", Join, "d")
	leaveC = change("l", Leave, "c")
	leaveA = change("l", Leave, "a")
	forceC = change("f", Force, "c")
)

// smallChanges are explored always.
var smallChanges = []config{
	{name: "join C", peers: 3, ring: 2, changes: changes(joinC), crashes: 1, helpers: 1},
	{name: "join C, committed, crash", peers: 3, ring: 2, committed: "p", changes: changes(joinC), crashes: 1},
	{name: "join C, committed account, crash", mode: Everywhere, peers: 3, ring: 2, committed: "p", changes: changes(joinC), crashes: 1},
	{name: "join C, timeout", peers: 3, ring: 2, committed: "p", changes: changes(joinC), timeouts: 1},
	{name: "leave C, crash", peers: 3, committed: "p", changes: changes(leaveC), crashes: 1, helpers: 1},
	{name: "leave C, a helper that has read C before it was marked", peers: 3, committed: "p", changes: changes(leaveC), helpers: 1, reads: true},
	{name: "leave A is refused", peers: 3, committed: "p", changes: changes(leaveA), crashes: 1},
	{name: "leave A", peers: 3, changes: changes(leaveA), crashes: 1, helpers: 1},
}

// deepChanges take longer; ATOLL_EXPLORE=deep runs them.
var deepChanges = []config{
	{name: "7a join C, X@A, Y@C", peers: 3, ring: 2, lease: live, changes: changes(joinC), plans: []plan{known(2, add("x", "a", 1, "p")), add("y", "c", 2, "q")}},
	{name: "7d leave C, X@C, Y@A", peers: 3, lease: live, changes: changes(leaveC), plans: []plan{add("x", "c", 1, "p"), add("y", "a", 2, "q")}},
	{name: "7f force C, X@C, Y@A", peers: 3, lease: live, changes: changes(forceC), plans: []plan{add("x", "c", 1, "p"), known(2, add("y", "a", 2, "q"))}},
	{name: "join C, leave A", peers: 3, ring: 2, changes: changes(joinC, leaveA)},
	{name: "join C and D", peers: 4, ring: 2, changes: changes(joinC, joinD)},
	{name: "7a join C, X@A, Y@C, sweep", peers: 3, ring: 2, sweepers: 1, changes: changes(joinC), plans: []plan{known(2, add("x", "a", 1, "p")), add("y", "c", 2, "q")}},
	{name: "7b joins C and D, X@A, Y@C", peers: 4, ring: 2, changes: changes(joinC, joinD), plans: []plan{known(2, add("x", "a", 1, "p")), known(3, add("y", "c", 2, "q"))}},
	{name: "7b joins C and D, X@C, Y@D", peers: 4, ring: 2, changes: changes(joinC, joinD), plans: []plan{known(3, add("x", "c", 1, "p")), add("y", "d", 2, "q")}},
	{name: "7e join D, leave C, X@C, Y@D", peers: 4, ring: 3, changes: changes(joinD, leaveC), plans: []plan{known(3, add("x", "c", 1, "p")), add("y", "d", 2, "q")}},
}

func TestExploreChanges(t *testing.T) {
	for _, cfg := range smallChanges {
		t.Run(cfg.name, func(t *testing.T) { explore(t, cfg) })
	}
}

// TestExploreChangesDeep takes minutes and gigabytes; ATOLL_EXPLORE=deep runs it.
func TestExploreChangesDeep(t *testing.T) {
	if os.Getenv("ATOLL_EXPLORE") != "deep" {
		t.Skip("ATOLL_EXPLORE is not deep: these configurations take minutes")
	}
	for _, cfg := range deepChanges {
		t.Run(cfg.name, func(t *testing.T) { explore(t, cfg) })
	}
}
