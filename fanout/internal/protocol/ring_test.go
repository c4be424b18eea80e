// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ringWorld is one state of a model in which coordinators make the ID of a ring of the first
// release while the membership changes. Each coordinator may end at any moment.
type ringWorld struct {
	sets   map[string]PeerSet
	makers []ringMaker
	change int // how many writes of the change are done
}

// ringMaker is a coordinator that makes the ring's ID. It reads each PeerSet, decides, and writes
// one PeerSet after another; the fields show its progress.
type ringMaker struct {
	id   string
	over bool
	at   int // which PeerSet is read next
	read map[string]PeerSet
	plan *RingPlan
	runs int
}

var ringPeers = []string{"a", "b", "c"}

func (w ringWorld) clone() ringWorld {
	w.sets = maps.Clone(w.sets)
	w.makers = slices.Clone(w.makers)
	for i := range w.makers {
		w.makers[i].read = maps.Clone(w.makers[i].read)
		if p := w.makers[i].plan; p != nil {
			plan := *p
			w.makers[i].plan = &plan
		}
	}
	return w
}

func (w ringWorld) key() string {
	var b strings.Builder
	for _, p := range ringPeers {
		fmt.Fprintf(&b, "%s %s %s|", w.sets[p].RV, w.sets[p].Ring, w.sets[p].Change.ID)
	}
	fmt.Fprintf(&b, "%d|", w.change)
	for _, m := range w.makers {
		fmt.Fprintf(&b, "%v %d %d|", m.over, m.at, m.runs)
		for _, p := range ringPeers {
			b.WriteString(m.read[p].RV + " ")
		}
		if m.plan != nil {
			fmt.Fprintf(&b, "%v", *m.plan)
		}
	}
	return b.String()
}

// write is a compare-and-swap.
func (w ringWorld) write(peer, rv string, edit func(*PeerSet)) bool {
	set := w.sets[peer]
	if set.RV != rv {
		return false
	}
	edit(&set)
	set.RV += "+"
	w.sets[peer] = set
	return true
}

// step lets maker i do its next step.
func (w ringWorld) step(i int) {
	m := &w.makers[i]
	switch {
	case m.at < len(ringPeers):
		p := ringPeers[m.at]
		m.read[p] = w.sets[p]
		if m.at++; m.at == len(ringPeers) {
			plan := PlanRing(m.read)
			m.plan = &plan
		}
	case len(m.plan.At) == 0:
		m.over = true
	default:
		p, id := m.plan.At[0], m.plan.ID
		m.plan.At = m.plan.At[1:]
		if id == "" {
			id = m.id
		}
		w.write(p, m.read[p].RV, func(s *PeerSet) { s.Ring = id })
		if len(m.plan.At) == 0 { // read back
			m.at, m.plan, m.read = 0, nil, map[string]PeerSet{}
			if m.runs++; m.runs == 2 {
				m.over = true
			}
		}
	}
}

// ringChanges are changes of the membership, each as the list of its writes.
var ringChanges = map[string][]func(ringWorld){
	"none": nil,
	"a is removed by force": {
		take("b"), take("c"),
		func(w ringWorld) {
			edit(w, "b", func(s *PeerSet) { *s = s.without(Departure{Peer: "a", How: "Forced"}) })
		},
		func(w ringWorld) {
			edit(w, "c", func(s *PeerSet) { *s = s.without(Departure{Peer: "a", How: "Forced"}) })
		},
		free("c", "b"),
	},
	"c leaves": {
		take("a"), take("b", "c"),
		func(w ringWorld) {
			edit(w, "a", func(s *PeerSet) { *s = s.without(Departure{Peer: "c", How: "Left"}) })
		},
		func(w ringWorld) {
			edit(w, "b", func(s *PeerSet) { *s = s.without(Departure{Peer: "c", How: "Left"}) })
		},
		func(w ringWorld) {
			edit(w, "c", func(s *PeerSet) { *s = s.without(Departure{Peer: "c", How: "Left"}); s.Self.State = peerOut })
		},
		free("c", "b", "a"),
	},
	"c is quarantined": { // c is quarantined and joins again, with the ring's ID
		take("a"), take("b", "c"),
		func(w ringWorld) {
			edit(w, "c", func(s *PeerSet) { s.Self.State, s.Ring = peerQuarantined, w.sets["a"].Ring })
		},
		func(w ringWorld) {
			edit(w, "c", func(s *PeerSet) { s.Self.State, s.Ring = peerActive, w.sets["a"].Ring })
		},
		free("c", "b", "a"),
	},
}

func edit(w ringWorld, peer string, f func(*PeerSet)) { w.write(peer, w.sets[peer].RV, f) }

func take(peers ...string) func(ringWorld) { return slot("x", peers) }
func free(peers ...string) func(ringWorld) { return slot("", peers) }

func slot(id string, peers []string) func(ringWorld) {
	return func(w ringWorld) {
		for _, p := range peers {
			edit(w, p, func(s *PeerSet) { s.Change.ID = id })
		}
	}
}

// TestTheRingIDIsMadeOnce lets two coordinators make the ID of a ring, in every order of their
// steps. Each of them may end at any moment. No step changes an ID that a PeerSet has. When both
// have ended and a further sweep has run, all members have the same ID.
func TestTheRingIDIsMadeOnce(t *testing.T) {
	for name, change := range ringChanges {
		t.Run(name, func(t *testing.T) {
			var members []Member
			for _, p := range ringPeers {
				members = append(members, Member{Peer: p, UID: "u" + p, State: peerActive})
			}
			begin := ringWorld{sets: map[string]PeerSet{}}
			for _, m := range members {
				begin.sets[m.Peer] = PeerSet{RV: m.Peer, Self: m, Members: members}
			}
			for _, id := range []string{"x", "y"} {
				begin.makers = append(begin.makers, ringMaker{id: id, read: map[string]PeerSet{}})
			}
			seen := map[string]bool{}
			queue := []ringWorld{begin}
			visit := func(from, to ringWorld) {
				for _, p := range ringPeers {
					if was := from.sets[p].Ring; was != "" && was != to.sets[p].Ring {
						t.Fatalf("%s of %s became %q", was, p, to.sets[p].Ring)
					}
				}
				if k := to.key(); !seen[k] {
					seen[k] = true
					queue = append(queue, to)
				}
			}
			ended := map[string]bool{}
			for len(queue) > 0 {
				w := queue[0]
				queue = queue[1:]
				if w.change < len(change) {
					next := w.clone()
					change[w.change](next)
					next.change++
					visit(w, next)
				} else if k := fmt.Sprint(w.sets); !ended[k] {
					// Both makers may end here.
					ended[k] = true
					requireOneRing(t, w.clone())
				}
				for i := range w.makers {
					if !w.makers[i].over {
						next := w.clone()
						next.step(i)
						visit(w, next)
					}
				}
			}
			require.Greater(t, len(ended), 3)
			t.Logf("%d states, %d ways to end", len(seen), len(ended))
		})
	}
}

// requireOneRing runs one sweep in a world at rest. Then all members must have the same ID.
func requireOneRing(t *testing.T, w ringWorld) {
	t.Helper()
	w.makers = []ringMaker{{id: "z", read: map[string]PeerSet{}}}
	for !w.makers[0].over {
		w.step(0)
	}
	ids := map[string]bool{}
	for _, p := range w.sets["b"].names("") {
		require.NotEmpty(t, w.sets[p].Ring, "%s: %+v", p, w.sets)
		ids[w.sets[p].Ring] = true
	}
	require.Len(t, ids, 1)
}

func TestPlanRing(t *testing.T) {
	for name, c := range map[string]struct {
		ids  map[string]string
		edit func(map[string]*PeerSet)
		want RingPlan
	}{
		"none has one":       {ids: map[string]string{"b": "", "c": ""}, want: RingPlan{At: []string{"b"}}},
		"one is missing":     {ids: map[string]string{"b": "", "c": "r", "d": "r"}, want: RingPlan{ID: "r", At: []string{"b"}}},
		"all have it":        {ids: map[string]string{"b": "r", "c": "r"}, want: RingPlan{ID: "r"}},
		"two":                {ids: map[string]string{"b": "r", "c": "s"}, want: RingPlan{Conflict: "b belongs to ring r and c to ring s, and they list each other"}},
		"one was not read":   {ids: map[string]string{"b": "", "c": ""}, edit: func(s map[string]*PeerSet) { delete(s, "c") }},
		"a change":           {ids: map[string]string{"b": "", "c": ""}, edit: func(s map[string]*PeerSet) { s["c"].Change.ID = "x" }},
		"a quarantined":      {ids: map[string]string{"b": "", "c": ""}, edit: func(s map[string]*PeerSet) { s["c"].Self.State = peerQuarantined }},
		"other members":      {ids: map[string]string{"b": "", "c": ""}, edit: func(s map[string]*PeerSet) { s["c"].Members = s["c"].Members[:1] }},
		"no ring":            {},
		"a stranger outside": {ids: map[string]string{"b": "r", "c": ""}, edit: func(s map[string]*PeerSet) { s["d"] = &PeerSet{Self: Member{Peer: "d", State: peerOut}} }, want: RingPlan{ID: "r", At: []string{"c"}}},
		"one was given up": {ids: map[string]string{"a": "q", "b": "", "c": ""}, edit: func(s map[string]*PeerSet) {
			for _, p := range []string{"b", "c"} {
				*s[p] = s[p].without(Departure{Peer: "a", How: "Forced"})
			}
		}, want: RingPlan{At: []string{"b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			sets := ringOf(c.ids)
			if c.edit != nil {
				c.edit(sets)
			}
			in := map[string]PeerSet{}
			for p, s := range sets {
				in[p] = *s
			}
			require.Equal(t, c.want, PlanRing(in))
		})
	}
}
