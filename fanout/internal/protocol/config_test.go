// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// plan is one coordinator of a configuration, with its operation.
type plan struct {
	op Operation
	// retry: if the operation is aborted in favor of an older rival, it runs again under a new ID.
	retry bool
	// after: the operation begins when the plan with that number, counted from 1, is over.
	after int
	// member: the operation begins when this peer is a full member.
	member string
	// peers is how many of the peers the coordinator has configured; 0: all.
	peers int
}

// config is a model to explore.
type config struct {
	name     string
	states   int // how many states the deep exploration visits at least, even if ATOLL_STATES is lower
	mode     Mode
	peers    int
	plans    []plan
	sweepers int // how many sweeps may be under way at once

	committed   string // the payload of an object that is committed from the start, in peer a or as committedAt states
	moved       string // the peers to which that object's home has moved, in order; the other replicas name its first home
	late        string // the peers whose replica is still Reserved
	strangers   string // the peers that hold an object without a claim, which a person applied
	committedAt int    // 1 + the peer of the committed object; 0: the first
	givenUp     bool   // sweepers do not use a peer that was removed by force; see also configured and reaches
	ring        int    // how many of the first peers are members from the start; 0: all
	changes     []ChangeOperation
	loss        loss    // a peer that goes down
	astray      string  // a peer whose credentials lead to another ring's cluster for a while
	otherHolds  bool    // that other cluster holds a committed object of the name
	restored    string  // a peer that is restored from a backup
	detected    bool    // from the restore until the peer is quarantined, only the peer's rejoin uses its replies
	noticed     bool    // the same, from some time after the restore
	inTurn      bool    // a change begins when the one before it is over
	helpers     int     // how many processes continue changes that they find
	reads       bool    // a change's reads of PeerSets may be late
	replies     bool    // a reply is a step of its own and may arrive late
	lodger      *config // operations in the namespace that the object owns, with machines of their own
	tenant      int     // 1 + the peer in which an object appears in the namespace that the object owns

	// How often each fault may occur.
	timeouts, unsent, denials, crashes, duplicates, expiries int
	bumps, deletes, foreign, beats, moves                    int
	persons

	valve   bool // a plain delete of the home requests its removal
	crowded bool // more removals are requested at once than the limit

	adopters   int  // how many processes settle records that they find
	takers     int  // how many processes take over an entry of a log that all share
	retained   bool // the names of ended records stay taken
	twice      Verb // the verb that may be sent twice; "": Create
	inert      bool // reservations carry no payload
	laden      bool // an earlier release wrote the guards, with payload
	lease      int
	exactlyOne bool // exactly one content of the adds must come into effect
	allSucceed bool // every operation must succeed

	mutant mutant
}

// holds reports whether the object owns a namespace.
func (cfg *config) holds() bool { return cfg.tenant > 0 || cfg.lodger != nil }

// mutant breaks one rule of the protocol. The zero value breaks none.
type mutant struct {
	command  func(w *world, p *proc, c Command) Command
	reply    func(w *world, p *proc, c Command, r Reply) Reply
	over     func(w *world, p *proc)
	handled  func(p *proc, cmds []Command) []Command
	stale    bool                          // sweeps read the primary before the secondary that they judge
	answer   func(c Command) (Reply, bool) // returns the reply in place of the peer's
	blind    bool                          // the model reports the consequence of a broken rule, not the rule itself
	change   func(w *world, p *proc, c Command) Command
	told     func(w *world, p *proc, c Command, r Reply) Reply // edits the replies to a change of the membership
	upsert   bool                                              // a decision creates its record again if the record is gone
	scrapped bool                                              // a crash loses the log as well
	judged   func(found map[string]Presence)                   // edits the identities of the clusters before they are judged
	counted  func(Reply) bool                                  // reports whether a process uses this reply of a wrong cluster
	trusting bool                                              // processes use the replies of a restored peer before its rejoin begins
	named    bool                                              // the UID of a primary or a record is known before it exists
}
