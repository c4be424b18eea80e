// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/docpage"
)

// mostPlans and mostSweeps bound a run: each plan and each sweep has to change the model.
const mostPlans, mostSweeps = 4, 5

// rest plans and acts until a plan changes nothing. It returns that plan, the number of plans,
// and why the action of the last one had no effect.
func (m *model) rest(t *rapid.T, planned func() plan, act func(plan) error) (p plan, plans int, failed error) {
	for plans = 1; ; plans++ {
		require.LessOrEqual(t, plans, mostPlans, "no rest")
		p = planned()
		before := m.text()
		if failed = act(p); m.text() == before {
			return p, plans, failed
		}
		require.NotEqual(t, actionNone, p.action)
		require.Empty(t, p.reason, "%s, and %d", p.reason, p.action)
	}
}

// lags reports whether a reachable member has an object that no operation changes. Then the plan
// asks for its operation again.
func (m *model) lags(home *modelPeer) bool {
	return m.any(func(p *modelPeer) bool { return p.counts() && !p.silent() && p.obstructed(home) })
}

// contradicts reports whether a replica is ahead of its home, or has other content in the home's
// revision. Only a sweep settles this.
func (p *modelPeer) contradicts(home *modelPeer) bool {
	return p != home && p.copy != nil && (p.copy.Revision > home.copy.Revision || p.copy.Revision == home.copy.Revision && p.copy.Digest != home.copy.Digest)
}

func (p *modelPeer) holds(home *modelPeer, digest string) bool {
	c := p.copy
	latest := home == nil || c != nil && c.Revision >= home.copy.Revision
	return c != nil && c.Stage == fanoutv1alpha1.StageActive && !c.Terminating && latest && c.Digest == digest && !c.edited()
}

// requireSpread requires that each reachable member holds the content, unless an object of others
// has the name there.
func (m *model) requireSpread(t *rapid.T, digest string) {
	home := m.home()
	for _, p := range m.peers {
		if p.counts() && !p.silent() && !p.obstructed(home) && !p.contradicts(home) {
			require.True(t, p.holds(home, digest), "%s lacks %s:%s", p.peer, digest, m.text())
		}
	}
}

// count counts the members, those that hold the content, and the reachable ones that lack it or are
// not ready with it.
func (m *model) count(digest string) (members, holders, lacking, unready int) {
	home := m.home()
	for _, p := range m.peers {
		if !p.counts() {
			continue
		}
		members++
		switch {
		case p.silent():
		case !p.holds(home, digest):
			lacking++
		case !p.copy.Ready:
			unready++
		default:
			holders++
		}
	}
	return members, holders, lacking, unready
}

// requireReady requires that Ready is True only if all members hold the content, and Unknown if
// only silent members may lack it.
func (m *model) requireReady(t *rapid.T, p plan, failed error) {
	pr := presence(types.NamespacedName{Name: "x"}, m.observed(), wanted{digest: p.digest, origin: "ours", removing: p.removing})
	if pr.Reason = p.reason; p.differs != nil || errors.Is(failed, errNameHeld) { // see task.do
		pr.Reason = v1alpha1.AccountReasonConflict
	}
	members, holders, lacking, unready := m.count(p.digest)
	want := metav1.ConditionUnknown
	switch {
	case p.removing, pr.Reason == v1alpha1.AccountReasonConflict, lacking > 0, unready > 0 && holders+unready == members:
		want = metav1.ConditionFalse
	case members > 0 && holders == members:
		want = metav1.ConditionTrue
	}
	ready := pr.conditions(1)[0]
	require.Equal(t, want, ready.Status, "%s: %s:%s", ready.Reason, ready.Message, m.text())
}

// requireOthersKept requires that objects with another claim, and those without a readable claim,
// are as before. A removal may delete those with the claim, and nothing else is deleted.
func (m *model) requireOthersKept(t *rapid.T, before []observation, claim string, removal bool) {
	for i, s := range before {
		now := m.peers[i]
		switch {
		case s.copy == nil || removal && now.copy == nil:
		case now.copy == nil:
			require.Fail(t, "an object was removed", "in %s:%s", s.peer, m.text())
		case now.claim != claim || s.copy.Stage == "":
			require.Equal(t, s.copy, now.copy, "the object of others in %s", s.peer)
		}
	}
}

// act has the effect of an action for a central object whose plane is no peer.
func (c central) act(m *model, a action) error {
	switch a {
	case actionAdd:
		return m.add(c.bare, c.uid)
	case actionUpdate:
		return m.update(c.bare, c.uid)
	case actionAgree:
		m.bring()
	case actionAdopt, actionRemove, actionSweep:
		return errors.New("the plane is no peer, and nothing was deleted")
	}
	return nil
}

// conflicts reports whether the peers hold other content than the central object, which must stay.
func (c central) conflicts(m *model) bool {
	home := m.home()
	return home != nil && home.copy.Bare != c.bare && (c.agreed || home.copy.Origin != c.uid)
}

// requireKept requires that a plan changes nothing that it must not change.
func (c central) requireKept(t *rapid.T, m *model, p plan) {
	require.False(t, p.removing, "nothing was deleted")
	if p.action == actionNone {
		return
	}
	home, before, claim := m.home(), m.observed(), ""
	state := fmt.Sprintf("%d:%s", p.action, m.text())
	require.True(t, p.finalize, "the central object has to have the finalizer first")
	switch {
	case home == nil:
		require.Equal(t, actionAdd, p.action, state)
		require.False(t, m.any((*modelPeer).missed), "a peer is silent:%s", state)
		require.False(t, m.any((*modelPeer).homeless), "an add would be rejected, and write:%s", state)
		require.False(t, m.any((*modelPeer).applied), "an object without a claim has the name:%s", state)
	default:
		claim = home.claim
		require.Contains(t, []action{actionUpdate, actionAgree}, p.action)
		require.False(t, home.silent() || home.copy.Terminating || c.conflicts(m), "the objects must stay:%s", state)
	}
	_ = c.act(m, p.action)
	m.requireOthersKept(t, before, claim, false)
	if c.agreed && home != nil {
		require.Equal(t, before[m.index(home)].copy.Digest, home.copy.Digest, "agreed content does not change")
	}
}

// requireRest requires of the plan that changes nothing that all reachable members hold the
// content, or that the plan reports why not.
func (c central) requireRest(t *rapid.T, m *model, p plan, failed error) {
	home := m.home()
	state := fmt.Sprintf("%s %v %v:%s", p.reason, p.differs, failed, m.text())
	switch {
	case home == nil:
		m.requireReasonForNone(t, p, failed)
	case home.silent():
		require.Equal(t, v1alpha1.AccountReasonPeersUnknown, p.reason, state)
	case home.copy.Terminating, home.copy.Stage == fanoutv1alpha1.StageRemoving:
		require.Equal(t, v1alpha1.AccountReasonConflict, p.reason, state)
	case c.conflicts(m):
		require.Equal(t, &differingHome{home.peer, home.copy.Origin == c.uid}, p.differs, state)
	case c.agreed && home.copy.edited():
		require.Nil(t, p.differs, state) // a sweep commits the edit, which made it equal
	default:
		require.NoError(t, failed, state)
		require.Nil(t, p.differs, state)
		require.Empty(t, p.reason, state)
		require.True(t, p.finalize, state)
		require.Equal(t, c.bare, home.copy.Bare, state)
		if !c.agreed {
			require.Equal(t, c.uid, home.copy.Origin, state)
			require.Equal(t, c.digest, p.digest, state)
		}
		m.requireSpread(t, p.digest)
		require.True(t, p.action == actionNone || m.lags(home), state)
	}
	m.requireReady(t, p, failed)
}

// requireReasonForNone requires that the plan reports why the object is not added, in a ring without
// a home.
func (m *model) requireReasonForNone(t *rapid.T, p plan, failed error) {
	state := fmt.Sprintf("%s %v:%s", p.reason, failed, m.text())
	switch homeless := m.any((*modelPeer).homeless); {
	case m.any((*modelPeer).applied):
		require.Equal(t, v1alpha1.AccountReasonConflict, p.reason, state)
	case m.any((*modelPeer).missed), homeless && m.any((*modelPeer).silent):
		require.Equal(t, v1alpha1.AccountReasonPeersUnknown, p.reason, state)
	case homeless:
		require.Equal(t, v1alpha1.AccountReasonConflict, p.reason, state)
	default:
		require.Error(t, failed, state) // which the condition shows
	}
}

// For any objects in the peers: the plans for a central object come to rest, with the content in
// all peers or a reason. They remove nothing, and change nothing of others.
func TestStatesOfCentralObjects(t *testing.T) {
	states, most := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		states++
		m := drawModel(t)
		c := central{uid: "ours", bare: anyBare.Draw(t, "wanted"), agreed: rapid.IntRange(0, 2).Draw(t, "agreed") == 0}
		c.digest = contentOf(c.bare, c.uid)
		for sweeps := 0; ; sweeps++ {
			require.LessOrEqual(t, sweeps, mostSweeps, "no rest")
			p, plans, failed := m.rest(t, func() plan { return c.plan(m.observed()) }, func(p plan) error {
				c.requireKept(t, m.clone(), p)
				return c.act(m, p.action)
			})
			most = max(most, plans)
			c.requireRest(t, m, p, failed)
			before := m.text()
			if m.sweep(); m.text() == before {
				return
			}
		}
	})
	if !t.Failed() {
		docpage.Section(t, "states.md", "account", fmt.Sprintf("- account, a central plane that is no peer: %d states of an object and two or three peers; at most %d plans until one changes nothing\n", states, most))
	}
}
