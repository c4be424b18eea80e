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

// mostPlans is the greatest number of plans until one changes nothing, and mostSweeps the greatest
// number of sweeps until one changes nothing.
const mostPlans, mostSweeps = 4, 5

// rest makes plans and carries them out, until one changes nothing. It returns this last plan, the
// number of plans, and the error of the last plan's action.
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

// lags reports whether a reachable member has an object that no operation changes. Then each plan
// has an action, although the action changes nothing.
func (m *model) lags(home *modelPeer) bool {
	return m.any(func(p *modelPeer) bool { return p.counts() && !p.silent() && p.obstructed(home) })
}

// contradicts reports whether p has a replica that is ahead of its home, or has other content in
// the home's revision. Only a sweep settles this.
func (p *modelPeer) contradicts(home *modelPeer) bool {
	return p != home && p.copy != nil && (p.copy.Revision > home.copy.Revision || p.copy.Revision == home.copy.Revision && p.copy.Digest != home.copy.Digest)
}

func (p *modelPeer) holds(home *modelPeer, digest string) bool {
	c := p.copy
	latest := home == nil || c != nil && c.Revision >= home.copy.Revision
	return c != nil && c.Stage == fanoutv1alpha1.StageActive && !c.Terminating && latest && c.Digest == digest && !c.edited()
}

// requireSpread requires that each reachable member holds the content. It skips a member whose
// object is not of the home's operation, is being deleted, or contradicts the home.
func (m *model) requireSpread(t *rapid.T, digest string) {
	home := m.home()
	for _, p := range m.peers {
		if p.counts() && !p.silent() && !p.obstructed(home) && !p.contradicts(home) {
			require.True(t, p.holds(home, digest), "%s lacks %s:%s", p.peer, digest, m.text())
		}
	}
}

// count returns the number of members, and the numbers of reachable members that hold the content
// and are ready with it, that lack it, and that hold it and are not ready.
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

// requireReady requires that Ready is True if all members hold the content and are ready with it.
// Ready must be False if the object is being removed or in conflict, if a reachable member lacks
// the content, or if all members hold it and one is not ready. Otherwise Ready must be Unknown.
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

// requireOthersKept requires that an object is as before if it had another claim than the given
// one, or no readable claim. An object with the given claim may be missing now only if removal is
// true.
func (m *model) requireOthersKept(t *rapid.T, before *model, claim string, removal bool) {
	for i, was := range before.peers {
		now := m.peers[i]
		switch {
		case was.copy == nil:
		case was.claim != claim || was.copy.Stage == "":
			require.Equal(t, was.copy, now.copy, "the object of others in %s:%s", was.peer, m.text())
			require.Equal(t, was.claim, now.claim, "the object of others in %s:%s", was.peer, m.text())
		case now.copy == nil:
			require.True(t, removal, "an object was removed in %s:%s", was.peer, m.text())
		}
	}
}

// act changes m as an action for c does, if c's plane is no peer. Its error is why it changed
// nothing.
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

// conflicts reports whether the home has other content than the central object, and a plan must not
// change it.
func (c central) conflicts(m *model) bool {
	home := m.home()
	return home != nil && home.copy.Bare != c.bare && (c.agreed || home.copy.Origin != c.uid)
}

// requireKept requires that the action of a plan is allowed in the state m, and carries it out. The
// action must not change objects of other operations, or agreed content.
func (c central) requireKept(t *rapid.T, m *model, p plan) {
	require.False(t, p.removing, "nothing was deleted")
	if p.action == actionNone {
		return
	}
	home, before, claim := m.home(), m.clone(), ""
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
		require.Equal(t, before.peers[m.index(home)].copy.Digest, home.copy.Digest, "agreed content does not change")
	}
}

// requireRest takes the plan that changes nothing. It requires that all reachable members hold the
// content, or that the plan or the error of its action shows why not.
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
		require.Nil(t, p.differs, state) // the edit made the home equal to the central object, and a sweep commits it
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

// requireReasonForNone takes the plan that changes nothing in a ring without a home. It requires
// that the plan or the error of its action shows why the object was not added.
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
		require.Error(t, failed, state) // the condition shows this error
	}
}

// The test draws the objects of one name in two or three peers, and a central object. Then it
// alternates between the Replicator's plans and a sweep, until both change nothing. Each time the
// plans have come to rest, the reachable members hold the content, or the plan or its error shows
// why not. No plan deletes an object or changes an object of another operation.
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
