// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// comebacks are configurations in which a peer is removed by force and rejoins. Meanwhile a sweeper
// may be about to delete guards or replicas whose primary is in that peer: they were dead (held no
// name) only while the peer was no member. Every run of the tests explores them.
var comebacks = []config{
	{name: "7g force B, comeback, sweep", peers: 2, committed: "p", committedAt: 2, sweepers: 1, givenUp: true, inTurn: true, changes: changes(forceB, returnB)},
	{name: "7g force B, comeback, account, sweep", mode: Everywhere, peers: 2, committed: "p", committedAt: 2, sweepers: 1, givenUp: true, inTurn: true, changes: changes(forceB, returnB)},
	titled("7g force B, comeback, X@B, sweep", comeback(mutant{})),
}

func titled(name string, cfg config) config {
	cfg.name = name
	return cfg
}
