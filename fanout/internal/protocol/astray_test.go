// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// astray is the state of a peer whose credentials lead for a while to a cluster of the same name in
// another ring. As in the runtime, the protocol gets replies only of a cluster that is identified as
// the peer's own. Otherwise it treats the peer as unreachable.
type astray struct {
	now, over bool
	other     cell // the other ring's cluster
}

const (
	ownRing   = "ring-1"
	otherRing = "ring-2"
)

// otherRing creates the other ring's cluster to which the credentials will lead.
func (w *world) otherRing() {
	i := w.store.index(w.cfg.astray)
	if i < 0 {
		return
	}
	for j := range w.store.cells {
		if set := w.store.cells[j].set; set != nil {
			named := *set
			named.Ring = ownRing
			w.store.cells[j].set = &named
		}
	}
	self := Member{Peer: w.cfg.astray, UID: "other", State: peerActive}
	w.astray.other.set = &PeerSet{UID: "sother", RV: w.store.rv(), Ring: otherRing, Self: self, Members: []Member{self}, Epoch: 1}
	if w.cfg.otherHolds {
		o := Object{UID: "other", RV: w.store.rv(), Claimed: true, Stage: Configured, Finalizer: true, Payload: "other"}
		o.Claim = Claim{Operation: "other", Primary: true, Peer: w.cfg.astray, Target: w.cfg.astray}
		w.astray.other.obj = &o
	}
}

// strays adds the actions that start and end the misdirection.
func (w *world) strays(add func(k kind, a, b int)) {
	switch i := w.store.index(w.cfg.astray); {
	case i < 0 || w.astray.over:
	case w.astray.now:
		add(actCorrect, i, 0)
	default:
		add(actAstray, i, 0)
	}
}

// misdirected returns the reply to message m and true if m reaches the other ring's cluster. It
// returns false if m does not.
func (w *world) misdirected(m message) (Reply, bool) {
	if !w.astray.now || m.cmd.Peer != w.cfg.astray {
		return Reply{}, false
	}
	i := w.store.index(m.cmd.Peer)
	own := w.store.cells[i]
	w.store.cells[i] = w.astray.other
	defer func() {
		w.astray.other = w.store.cells[i]
		w.store.cells[i] = own
	}()
	if w.identified()[m.cmd.Peer].Trusted() {
		r, _ := w.store.apply(w.cfg.mode, m.cmd)
		return r, true
	}
	if counted := w.cfg.mutant.counted; counted != nil {
		other := w.store.clone()
		if r, _ := other.apply(w.cfg.mode, m.cmd); counted(r) {
			return r, true
		}
	}
	return refused(Unavailable), true
}

// identified judges the clusters behind the connections, as the runtime does.
func (w *world) identified() map[string]Identification {
	found := map[string]Presence{}
	for i, c := range w.store.cells {
		if c.set != nil {
			found[peerName(i)] = Presence{UID: c.set.Self.UID, HasSet: true, Set: *c.set}
		}
	}
	if w.cfg.mutant.judged != nil {
		w.cfg.mutant.judged(found)
	}
	return Identify("", found)
}

// astraySmall are configurations in which a peer's credentials lead to another cluster for a
// while.
var astraySmall = []config{
	{name: "A's credentials lead elsewhere, Y@B, sweep", peers: 3, committed: "p", astray: "a", sweepers: 1, plans: []plan{add("y", "b", 1, "q")}},
	{name: "A's credentials lead elsewhere, X@A, Y@B", peers: 2, astray: "a", plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
	{name: "A's credentials lead elsewhere, no UIDs, X@A", peers: 3, astray: "a", plans: []plan{add("x", "a", 1, "p")}, mutant: mutant{judged: unreadable}},
	{name: "B's credentials lead elsewhere, removal", peers: 2, committed: "p", astray: "b", plans: []plan{removal("r")}},
	{name: "B's credentials lead to an owner, X@A", peers: 2, astray: "b", otherHolds: true, plans: []plan{add("x", "a", 1, "p")}},
}

var astrayDeep = []config{
	{name: "A's credentials lead elsewhere, X@A, Y@B, sweep", peers: 2, astray: "a", sweepers: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
	{name: "A's credentials lead elsewhere, account, update, sweep", mode: Everywhere, peers: 2, committed: "p", astray: "a", sweepers: 1, plans: []plan{update("x", "q")}},
	{name: "B's credentials lead elsewhere, account, removal, sweep", mode: Everywhere, peers: 2, committed: "p", astray: "b", sweepers: 1, plans: []plan{removal("r")}},
	{name: "A's credentials lead elsewhere, X@A, a crash", peers: 2, astray: "a", crashes: 1, sweepers: 1, plans: []plan{add("x", "a", 1, "p")}},
}

// astrayMutants break the rules by which processes recognize the wrong cluster and ignore it.
var astrayMutants = []broken{
	{rule: "R1 the cluster of a peer is compared", want: "I2", cfg: misled(mutant{
		judged: func(found map[string]Presence) {
			for peer, p := range found {
				p.UID, p.Set.Self.UID, p.Set.Ring = "k"+peer, "k"+peer, ownRing
				found[peer] = p
			}
		},
	})},
	{rule: "R1 an object that is absent in a wrong cluster is not absent", want: "I8", cfg: misled(mutant{
		counted: func(r Reply) bool { return r.Code == NotFound },
	})},
	{rule: "R1 a write to a wrong cluster confirms nothing", want: "I2", cfg: config{
		peers: 2, astray: "b", plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{counted: func(r Reply) bool { return r.Class == Applied && r.Object.Claimed }},
	}},
}

// unreadable clears the UIDs, as if no credentials could read the UID of kube-system.
func unreadable(found map[string]Presence) {
	for peer, p := range found {
		p.UID = ""
		found[peer] = p
	}
}

// misled returns a configuration of two rival adds in which the credentials of one rival's peer
// lead to another cluster.
func misled(m mutant) config {
	return config{peers: 2, astray: "a", plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}, mutant: m}
}
