// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// limit returns how many removals plain deletes may request at once before a sweep (a check and
// repair of all peers) holds them back: none if crowded is set, otherwise any number.
func (cfg *config) limit() Limit {
	if cfg.crowded {
		return Limit{}
	}
	return Limit{Objects: -1}
}

// release acts as a person who releases the removal that was requested by a plain delete of the
// object in peer i.
func (w *world) release(i int) {
	if o := w.store.cells[i].obj; o != nil && o.Requested() && !o.Released {
		released := *o
		released.Released, released.RV = true, w.store.rv()
		w.store.cells[i].obj = &released
	}
}

// inhabited reports whether an object in the namespace is in effect.
func (w *world) inhabited() bool { return w.tenant == resident || w.resides() }

// valve returns a violation if a removal that a plain delete requested was committed without a
// release by a person, although the namespace had objects or the limit was exceeded.
func (w *world) valve() string {
	if !w.cfg.valve || slices.ContainsFunc(w.cfg.plans, func(p plan) bool { return p.op.Action == Remove }) {
		return ""
	}
	for i, c := range w.store.cells {
		switch o := c.obj; {
		case o == nil, o.Stage != Removing, o.Released:
		case w.occupied:
			return "V: the removal in " + peerName(i) + " was committed under what lives in the namespace"
		case w.cfg.crowded:
			return "V: the removal in " + peerName(i) + " was committed beyond the limit"
		}
	}
	return ""
}

// requests are configurations in which a plain delete requests a removal.
var requests = []config{
	{name: "deletion requested, a tenant", mode: Everywhere, peers: 2, committed: "p", valve: true, sweepers: 1, deletes: 1, tenant: 2, moves: 1},
	{name: "deletion requested, an add in the namespace", mode: Everywhere, peers: 2, committed: "p", valve: true, sweepers: 1, deletes: 1,
		lodger: &config{peers: 2, plans: []plan{within(add("t", "b", 1, "s")), after(1, removal("u"))}}},
	{name: "deletion requested, a removal in the namespace", mode: Everywhere, peers: 2, committed: "p", valve: true, sweepers: 1, deletes: 1,
		lodger: &config{peers: 2, committed: "s", plans: []plan{removal("u")}}},
	{name: "deletion requested beyond the limit, released, two sweeps", mode: Everywhere, peers: 2, committed: "p", valve: true, crowded: true,
		sweepers: 2, deletes: 1, persons: persons{releases: 1}},
	{name: "deletion requested, a tenant, released", mode: Everywhere, peers: 2, committed: "p", valve: true, sweepers: 1, deletes: 1, tenant: 2, moves: 1,
		persons: persons{releases: 1}},
	{name: "deletion requested, update", mode: Everywhere, peers: 2, committed: "p", valve: true, crowded: true, sweepers: 1, deletes: 1, persons: persons{releases: 1},
		plans: []plan{update("u", "q")}},
	{name: "deletion requested, edit", mode: Everywhere, peers: 2, committed: "p", valve: true, crowded: true, sweepers: 1, deletes: 1,
		persons: persons{edits: 1, releases: 1}},
	{name: "deletion requested, removal", mode: Everywhere, peers: 2, committed: "p", valve: true, crowded: true, sweepers: 1, deletes: 1, timeouts: 1,
		plans: []plan{removal("r")}},
	{name: "deletion requested, add", mode: Everywhere, peers: 2, valve: true, sweepers: 1, deletes: 1, timeouts: 1, plans: []plan{add("x", "a", 1, "p")}},
}

var requestsDeep = []config{
	{name: "deletion requested, move", mode: Everywhere, peers: 2, committed: "p", valve: true, crowded: true, sweepers: 1, deletes: 1, persons: persons{releases: 1},
		plans: []plan{move("v", "b")}},
	{name: "deletion requested, join", mode: Everywhere, peers: 3, ring: 2, committed: "p", valve: true, crowded: true, sweepers: 1, deletes: 1,
		persons: persons{releases: 1}, changes: []ChangeOperation{change("j", Join, "c")}},
	{name: "deletion requested, leave", mode: Everywhere, peers: 2, committed: "p", valve: true, crowded: true, sweepers: 1, deletes: 1,
		persons: persons{releases: 1}, changes: []ChangeOperation{change("l", Leave, "a")}},
}

var requestMutants = []broken{
	{rule: "a requested removal is held while something lives in the namespace", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", valve: true, sweepers: 1, deletes: 1, tenant: 2, moves: 1,
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.m.Phase == listing && c.Verb == List {
				r.Occupants = nil
			}
			return r
		}},
	}, want: "V: the removal in a was committed under"},
	{rule: "a requested removal is held beyond the limit", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", valve: true, crowded: true, sweepers: 1, deletes: 1,
		mutant: mutant{reply: func(_ *world, _ *proc, _ Command, r Reply) Reply {
			r.Requests = Requests{}
			return r
		}},
	}, want: "V: the removal in a was committed beyond"},
	{rule: "an object whose removal is requested stays in effect in all peers", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", valve: true, crowded: true, sweepers: 1, deletes: 1,
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskBring && s.Step == stepPrimary {
				r.Object.Valve = false
			}
			return r
		}},
	}, want: "I2"},
}

func TestHeldNamesWhatLivesWhere(t *testing.T) {
	occupant := func(peer, resource string) Occupant { return Occupant{Peer: peer, Resource: resource} }
	require.Equal(t, "2 serviceclusters in eu, 1 serviceclusters in us; no answer from ap, me",
		inhabited([]Occupant{occupant("us", "serviceclusters"), occupant("eu", "serviceclusters"), occupant("eu", "serviceclusters")}, []string{"me", "ap"}))
	guard := occupant("ap", "serviceclusters")
	guard.Guard = true
	require.Equal(t, "1 serviceclusters in us", inhabited([]Occupant{guard, occupant("us", "serviceclusters")}, nil))
	require.Equal(t, "1 serviceclusters in ap; no answer from us", inhabited([]Occupant{guard}, []string{"us"}))
	require.Equal(t, "no answer from ap", inhabited(nil, []string{"ap"}))
	require.Equal(t, "no answer from a, b, c, d, e, f, g, h and 2 more",
		inhabited(nil, []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}))
}

func TestLimitIsTheLargerOfNumberAndShare(t *testing.T) {
	limit := Limit{Objects: 5, Share: 0.1}
	for _, c := range []struct {
		requested, homes int
		want             bool
	}{{5, 5, false}, {6, 6, true}, {6, 60, false}, {7, 60, true}, {10, 100, false}, {11, 100, true}} {
		require.Equal(t, c.want, limit.Exceeded(Requests{Homes: c.homes, Requested: c.requested}), c)
	}
	require.False(t, Limit{Objects: -1}.Exceeded(Requests{Homes: 1, Requested: 1}))
	require.True(t, Limit{}.Exceeded(Requests{Homes: 1, Requested: 1}))
}
