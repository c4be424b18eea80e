// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// comebacks are peers that were given up and come back, while somebody is about
// to delete what was dead in between. They are explored always.
var comebacks = []config{
	{name: "7g force B, comeback, sweep", peers: 2, committed: "p", committedAt: 2, sweepers: 1, givenUp: true, inTurn: true, changes: changes(forceB, returnB)},
	{name: "7g force B, comeback, account, sweep", mode: Everywhere, peers: 2, committed: "p", committedAt: 2, sweepers: 1, givenUp: true, inTurn: true, changes: changes(forceB, returnB)},
	titled("7g force B, comeback, X@B, sweep", comeback(mutant{})),
}

func titled(name string, cfg config) config {
	cfg.name = name
	return cfg
}
