// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/rivals"
	"github.com/atoll-dev/atoll/region"
)

// inAllPeers returns the observations of an object that eu-west (its home) and us-east have in
// revision 2.
func inAllPeers(change func(home, other *observation)) []observation {
	at := func(isHome bool) *replica {
		return &replica{
			UID: "u", Stage: fanoutv1alpha1.StageActive, Home: isHome, Revision: 2,
			Digest: "d", Actual: "d", Bare: "b", Origin: "wish", Ready: true,
		}
	}
	observed := []observation{
		{peer: "eu-west", member: fanoutv1alpha1.PeerActive, copy: at(true)},
		{peer: "us-east", member: fanoutv1alpha1.PeerActive, copy: at(false)},
	}
	if change != nil {
		change(&observed[0], &observed[1])
	}
	return observed
}

func inNoPeer(home, other *observation) { home.copy, other.copy = nil, nil }

var errSilent = errors.New("no answer")

func TestPlanOfACentralObject(t *testing.T) {
	waiting := func(message string) plan {
		return plan{digest: "d", reason: v1alpha1.AccountReasonPeersUnknown, message: message}
	}
	differing := func(ours bool) plan { return plan{digest: "d", differs: &differingHome{"eu-west", ours}} }
	for name, test := range map[string]struct {
		change func(home, other *observation)
		agreed bool
		want   plan
	}{
		"in all peers":       {nil, false, plan{digest: "d", finalize: true}},
		"in no peer":         {inNoPeer, false, plan{action: actionAdd, digest: "d", finalize: true}},
		"agreed, in no peer": {inNoPeer, true, plan{action: actionAdd, digest: "d", finalize: true}},
		"in no peer, one silent": {func(home, other *observation) {
			inNoPeer(home, other)
			other.err = errSilent
		}, false, waiting("adding it needs every peer")},
		"in no peer, one silent that is no member": {func(home, other *observation) {
			inNoPeer(home, other)
			other.err, other.member = errSilent, fanoutv1alpha1.PeerJoining
		}, false, plan{action: actionAdd, digest: "d", finalize: true}},
		"unclaimed in a peer": {func(home, other *observation) { home.copy, other.copy.Stage = nil, "" }, false, plan{
			digest: "d", reason: v1alpha1.AccountReasonConflict,
			message: "an object of the same name was applied in us-east without a claim: adopt or delete it there",
		}},
		"its home is silent": {func(home, _ *observation) { home.err = errSilent }, false, waiting("its home eu-west is unreachable")},
		"its home is being removed": {func(home, _ *observation) { home.copy.Stage = fanoutv1alpha1.StageRemoving }, false, plan{
			digest: "d", reason: v1alpha1.AccountReasonConflict,
			message: "an object of the same name is being removed from the peers: this one is added after that",
		}},
		"a peer lacks it":                           {func(_, other *observation) { other.copy = nil }, false, plan{action: actionUpdate, digest: "d", finalize: true}},
		"a silent peer lacks it":                    {func(_, other *observation) { other.err, other.copy = errSilent, nil }, false, plan{digest: "d", finalize: true}},
		"a peer is behind":                          {func(_, other *observation) { other.copy.Revision = 1 }, false, plan{action: actionUpdate, digest: "d", finalize: true}},
		"agreed, a peer lacks it":                   {func(_, other *observation) { other.copy = nil }, true, plan{action: actionAgree, digest: "d", finalize: true}},
		"the home has another content":              {func(home, _ *observation) { home.copy.Digest, home.copy.Bare = "e", "c" }, false, plan{action: actionUpdate, digest: "d", finalize: true}},
		"the home was edited":                       {func(home, _ *observation) { home.copy.Actual, home.copy.Bare = "e", "c" }, false, plan{action: actionUpdate, digest: "d", finalize: true}},
		"agreed, the home has another content":      {func(home, _ *observation) { home.copy.Digest, home.copy.Bare = "e", "c" }, true, differing(true)},
		"an object of others, with another content": {func(home, _ *observation) { home.copy.Digest, home.copy.Bare, home.copy.Origin = "e", "c", "" }, false, differing(false)},
		"an object of others, with the content":     {func(home, _ *observation) { home.copy.Digest, home.copy.Origin = "e", "" }, false, plan{action: actionUpdate, digest: "d", finalize: true}},
		"agreed, an object of others, the content":  {func(home, _ *observation) { home.copy.Digest, home.copy.Origin = "e", "" }, true, plan{digest: "e", finalize: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c := central{uid: "wish", digest: "d", bare: "b", agreed: test.agreed}
			got := c.plan(inAllPeers(test.change))
			require.Empty(t, cmp.Diff(test.want, got, cmp.AllowUnexported(plan{}, differingHome{})))
		})
	}
}

// Objects that were applied in several peers get one message, in whichever peer the plan is made, and in whichever order
// the peers were observed.
func TestPlansOfRivalsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var observed []observation
		var all []rivals.Rival
		for _, peer := range []region.PeerName{"ap-south", "eu-west", "us-east", "us-west"} {
			o := observation{peer: peer, member: fanoutv1alpha1.PeerActive}
			if rapid.Bool().Draw(t, "applied") {
				o.copy = &replica{UID: types.UID("in " + peer), Created: time.Unix(rapid.Int64Range(0, 9).Draw(t, "created"), 0)}
				all = append(all, rivals.Rival{Peer: string(peer), UID: string(o.copy.UID), Created: o.copy.Created})
			}
			observed = append(observed, o)
		}
		for _, self := range all {
			l := local{peer: region.PeerName(self.Peer), self: self, remove: "remove it"}
			p := l.plan(rapid.Permutation(observed).Draw(t, "observed"))
			if len(all) == 1 {
				require.Equal(t, actionAdopt, p.action)
				continue
			}
			require.Equal(t, plan{reason: v1alpha1.AccountReasonConflict, message: rivals.Message("remove it", all)}, p)
		}
		if len(all) > 1 {
			c := central{remove: "remove it"}
			require.Equal(t, plan{reason: v1alpha1.AccountReasonConflict, message: rivals.Message("remove it", all)}, c.plan(rapid.Permutation(observed).Draw(t, "observed")))
		}
	})
}

func TestPlanOfALocalObject(t *testing.T) {
	atHome := local{peer: "eu-west", claimed: true, stage: fanoutv1alpha1.StageActive, digest: "d", seeEdits: true}
	applied := local{peer: "eu-west", digest: "d", seeEdits: true, self: rivals.Rival{Peer: "eu-west", UID: "self"}, remove: "remove it"}
	with := func(l local, change func(*local)) local {
		change(&l)
		return l
	}
	deleted := with(atHome, func(l *local) { l.deleted = true })
	for name, test := range map[string]struct {
		object local
		change func(home, other *observation)
		want   plan
	}{
		"applied":             {applied, inNoPeer, plan{action: actionAdopt, digest: "d"}},
		"applied and deleted": {with(applied, func(l *local) { l.deleted = true }), inNoPeer, plan{removing: true}},
		"applied here and elsewhere": {applied, func(home, other *observation) { home.copy, other.copy.Stage = nil, "" }, plan{
			digest: "d", reason: v1alpha1.AccountReasonConflict,
			message: rivals.Message("remove it", []rivals.Rival{{Peer: "eu-west", UID: "self"}, {Peer: "us-east", UID: "u"}}),
		}},
		"applied, the name has a home": {applied, func(home, other *observation) { home.copy, other.copy.Home = nil, true }, plan{
			digest: "d", reason: v1alpha1.AccountReasonConflict, message: "an object in us-east holds the name",
		}},
		"applied, a peer is silent": {applied, func(home, other *observation) {
			inNoPeer(home, other)
			other.err = errSilent
		}, plan{digest: "d", reason: v1alpha1.AccountReasonPeersUnknown, message: "adopting it needs every peer"}},

		"reserved": {with(atHome, func(l *local) { l.stage = fanoutv1alpha1.StageReserved }), nil, plan{}},
		"without a known home": {atHome, func(home, _ *observation) { home.copy.Home = false }, plan{
			digest: "d", reason: v1alpha1.AccountReasonPeersUnknown, message: "no reachable peer is its home",
		}},
		"a replica": {atHome, func(home, other *observation) {
			home.copy.Home, other.copy.Home, other.copy.Digest = false, true, "e"
		}, plan{digest: "e"}},

		"at home, in all peers":    {atHome, nil, plan{digest: "d"}},
		"at home, a peer lacks it": {atHome, func(_, other *observation) { other.copy = nil }, plan{action: actionUpdate, digest: "d"}},
		"edited at home":           {atHome, func(home, _ *observation) { home.copy.Digest = "e" }, plan{action: actionUpdate, digest: "d"}},
		"edited, of a kind that does not see it": {
			with(atHome, func(l *local) { l.seeEdits = false }), func(home, _ *observation) { home.copy.Digest = "e" }, plan{digest: "d"},
		},
		"deleted": {deleted, nil, plan{action: actionRemove, digest: "d", removing: true}},
		"deleted, a peer is silent": {
			deleted, func(_, other *observation) { other.err = errSilent }, plan{digest: "d", removing: true},
		},
		"deleted, to be judged": {with(deleted, func(l *local) { l.requested = true }), nil, plan{action: actionSweep, digest: "d"}},
		"deleted and held":      {with(deleted, func(l *local) { l.requested, l.held = true, true }), nil, plan{digest: "d"}},
		"being removed, a sweep judged it": {
			with(deleted, func(l *local) { l.stage = fanoutv1alpha1.StageRemoving }), nil, plan{action: actionRemove, digest: "d", removing: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.object.plan(inAllPeers(test.change))
			require.Empty(t, cmp.Diff(test.want, got, cmp.AllowUnexported(plan{}, differingHome{})))
		})
	}
}
