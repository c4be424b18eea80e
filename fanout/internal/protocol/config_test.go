// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// plan is one coordinator of a configuration.
type plan struct {
	op Operation
	// retry begins again, as a new operation, after it gave way.
	retry bool
	// after: it begins when that plan, counted from 1, is over.
	after int
	// peers are those that it knows of; 0: all.
	peers int
}

// config is a model to explore.
type config struct {
	name     string
	states   int // how many are explored at least, if fewer are enough otherwise
	mode     Mode
	peers    int
	plans    []plan
	sweepers int // how many sweeps may be under way at once

	committed   string // the payload of an object that is committed at peer a from the start
	moved       string // the peers to which its home moved since, one after the other; no replica was told
	late        string // the peers whose replica is still Reserved
	strangers   string // the peers in which persons' objects stand
	committedAt int    // 1 + the peer of that object; 0: the first
	givenUp     bool   // sweeps do not have configured whom somebody has given up
	ring        int    // how many of the first peers are members from the start; 0: all
	changes     []ChangeOperation
	loss        loss    // a peer that goes down
	astray      string  // a peer whose credentials lead to another ring's cluster for a while
	otherHolds  bool    // and that cluster holds a committed object of the name
	restored    string  // a peer that is restored from a backup
	detected    bool    // nobody believes it until it comes back
	noticed     bool    // the same, from some time after the restore
	inTurn      bool    // a change begins when the one before it is over
	helpers     int     // how many processes go on with changes that they meet
	reads       bool    // a changer's reads of PeerSets may be late
	replies     bool    // an answer is a step of its own: it may come when other things have happened
	lodger      *config // what is added to the namespace that the object owns, by machines of its own
	tenant      int     // 1 + the peer in which something is added to the namespace that the object owns

	// What may go wrong, and how often.
	timeouts, unsent, denials, crashes, duplicates, expiries int
	bumps, deletes, foreign, beats, moves                    int
	persons

	valve   bool // a plain delete of the home requests its removal
	crowded bool // more are requested at once than the limit

	adopters   int  // how many processes settle records that they meet
	takers     int  // how many processes take over an entry of a log that all share
	retained   bool // ended records keep their names
	twice      Verb // what may be sent twice; "": creates
	inert      bool // reservations carry no payload
	laden      bool // an earlier release wrote the guards, with payload
	lease      int
	exactlyOne bool // of the adds exactly one content must come into effect
	allSucceed bool // every operation must succeed

	mutant mutant
}

// holds says that the object owns a namespace.
func (cfg *config) holds() bool { return cfg.tenant > 0 || cfg.lodger != nil }

// mutant breaks one rule of the protocol. The zero value breaks none.
type mutant struct {
	command  func(w *world, p *proc, c Command) Command
	reply    func(w *world, p *proc, c Command, r Reply) Reply
	over     func(w *world, p *proc)
	handled  func(p *proc, cmds []Command) []Command
	stale    bool                          // sweeps read the primary's peer before what they judge
	answer   func(c Command) (Reply, bool) // instead of the peer
	blind    bool                          // a violation is what it leads to, not the broken rule itself
	change   func(w *world, p *proc, c Command) Command
	told     func(w *world, p *proc, c Command, r Reply) Reply // what a changer is told
	upsert   bool                                              // a decision comes back to life
	scrapped bool                                              // a crash loses the log as well
	judged   func(found map[string]Presence)                   // what is known of the clusters, before they are judged
	counted  func(Reply) bool                                  // which answers of a wrong cluster count all the same
	trusting bool                                              // a peer that was restored is believed before it is back
	named    bool                                              // a primary's UID is known before it exists
}
