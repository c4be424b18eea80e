// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/docpage"
)

// local returns the central object of a plane that is itself the peer p of the model.
func (m *model) local(p *modelPeer) local {
	c := p.copy
	requested := m.requested && c.Home && c.Stage == fanoutv1alpha1.StageActive
	return local{
		peer: p.peer, claimed: c.Stage != "", stage: c.Stage, digest: contentOf(c.Bare, c.Origin) + m.filled, seeEdits: m.seesEdits,
		deleted: c.Terminating || requested, requested: requested, held: requested && m.held,
	}
}

// actInPlace changes m as an action for the central object in the peer p does. Its error is why it
// changed nothing.
func (m *model) actInPlace(p *modelPeer, a action) error {
	switch a {
	case actionUpdate:
		return m.update(p.copy.Bare, p.copy.Origin)
	case actionAdopt:
		return m.adopt(p.peer)
	case actionRemove:
		return m.remove()
	case actionSweep:
		return m.judgeDeletion()
	case actionAdd, actionAgree:
		return errors.New("the object is in its peer already")
	}
	return nil
}

// leaving reports whether the central object is being removed from all peers.
func (l local) leaving() bool {
	return l.deleted && !l.requested || l.stage == fanoutv1alpha1.StageRemoving
}

// requireKeptInPlace requires that the action of a plan is allowed in the state m, and carries it
// out. The action must not change objects of other operations.
func (m *model) requireKeptInPlace(t *rapid.T, itself *modelPeer, p plan) {
	l, home, before, claim := m.local(itself), m.home(), m.clone(), itself.claim
	state := fmt.Sprintf("%d:%s", p.action, m.text())
	require.False(t, p.finalize, "the protocol has its own finalizer:%s", state)
	switch p.action {
	case actionAdopt:
		claim, before.peers[m.index(itself)].copy = "one", nil
		require.False(t, l.claimed || l.deleted || home != nil, state)
		require.False(t, m.any((*modelPeer).missed), "a peer is silent:%s", state)
		require.False(t, m.any(func(p *modelPeer) bool { return p != itself && p.applied() }), state)
	case actionSweep:
		require.True(t, l.requested && !l.held, state)
	case actionRemove:
		require.True(t, l.leaving(), state)
		require.False(t, m.any((*modelPeer).silent), "a peer is silent:%s", state)
	case actionUpdate:
		require.False(t, l.leaving(), state)
	default:
		require.Fail(t, "the object is in its peer already", state)
	}
	require.True(t, home == itself || p.action == actionAdopt, "a replica follows its home:%s", state)
	_ = m.actInPlace(itself, p.action)
	m.requireOthersKept(t, before, claim, p.action == actionRemove)
}

// requireRestInPlace takes the plan that changes nothing while the central plane still has the
// object. It requires that all reachable members hold the content, or that the object follows
// another home or waits: for a peer, for an object in its namespace, or for another operation.
func (m *model) requireRestInPlace(t *rapid.T, itself *modelPeer, p plan, failed error) {
	home, l := m.home(), m.local(itself)
	state := fmt.Sprintf("%d %s %t %v:%s", p.action, p.reason, p.removing, failed, m.text())
	switch {
	case !l.claimed:
		m.requireRestOfApplied(t, itself, p, failed)
		return
	case l.stage == fanoutv1alpha1.StageReserved:
		require.Equal(t, plan{removing: l.deleted}, p, state)
		return
	case home == nil:
		require.Equal(t, v1alpha1.AccountReasonPeersUnknown, p.reason, state)
	case home != itself:
		require.Equal(t, plan{digest: home.copy.Digest, removing: l.leaving()}, p, state)
	case l.leaving() && m.any((*modelPeer).silent):
		require.True(t, p.removing, state)
	case l.leaving():
		require.True(t, failed != nil && m.occupied, state)
	case home.silent():
		require.True(t, failed != nil || p.action == actionNone, state)
	default:
		require.Equal(t, l.requested, l.held, state)
		require.NoError(t, failed, state)
		require.Equal(t, contentOf(home.copy.Bare, home.copy.Origin)+m.filled, p.digest, state)
		require.Equal(t, home.copy.Digest+m.filled, p.digest, state)
		require.True(t, p.action == actionNone || m.lags(home), state)
		m.requireSpread(t, home.copy.Digest)
	}
	m.requireReady(t, p, failed)
}

// requireRestOfApplied does the work of requireRestInPlace for an object without a claim.
func (m *model) requireRestOfApplied(t *rapid.T, itself *modelPeer, p plan, failed error) {
	state := fmt.Sprintf("%d %s %t %v:%s", p.action, p.reason, p.removing, failed, m.text())
	switch {
	case itself.copy.Terminating:
		require.True(t, p.removing, state)
	case m.home() != nil, m.any(func(p *modelPeer) bool { return p != itself && p.applied() }):
		require.Equal(t, v1alpha1.AccountReasonConflict, p.reason, state)
	case m.any((*modelPeer).missed):
		require.Equal(t, v1alpha1.AccountReasonPeersUnknown, p.reason, state)
	default:
		require.Error(t, failed, state) // the condition shows this error
	}
}

// drawInPlace returns a ring in an arbitrary state, and the peer of this ring that is the central
// plane. This peer has the object.
func drawInPlace(t *rapid.T) (m *model, itself *modelPeer) {
	m = drawModel(t)
	itself = m.peers[rapid.IntRange(0, len(m.peers)-1).Draw(t, "itself")]
	if !m.seesEdits && rapid.Bool().Draw(t, "filled in") {
		m.filled = " with defaults"
	}
	if itself.copy == nil || itself.copy.Bad != "" { // the Replicator would make no plan
		m.put(itself, "one", false, 1, "a", "")
	}
	m.requested = rapid.IntRange(0, 2).Draw(t, "requested") == 0 && itself.copy.Home && itself.copy.Stage == fanoutv1alpha1.StageActive
	itself.copy.Terminating = itself.copy.Terminating && !m.requested
	return m, itself
}

// The test draws the objects of one name in two or three peers. One of the peers is the central
// plane, and has an object. The test alternates between the Replicator's plans for this object and
// a sweep, until both change nothing. Each time the plans have come to rest, the central plane has
// lost the object, or requireRestInPlace holds.
func TestStatesOfObjectsInPlace(t *testing.T) {
	states, most := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		states++
		m, itself := drawInPlace(t)
		planned := func() plan {
			if itself.copy == nil {
				return plan{}
			}
			return m.local(itself).plan(m.observed())
		}
		for sweeps := 0; ; sweeps++ {
			require.LessOrEqual(t, sweeps, mostSweeps, "no rest")
			p, plans, failed := m.rest(t, planned, func(p plan) error {
				if p.action == actionNone {
					return nil
				}
				after := m.clone()
				after.requireKeptInPlace(t, after.peers[m.index(itself)], p)
				return m.actInPlace(itself, p.action)
			})
			most = max(most, plans)
			if itself.copy != nil {
				m.requireRestInPlace(t, itself, p, failed)
			}
			before := m.text()
			if m.sweep(); m.text() == before {
				return
			}
		}
	})
	if !t.Failed() {
		docpage.Section(t, "states.md", "inplace", fmt.Sprintf("- account, a central plane that is a peer: %d states of an object and two or three peers; at most %d plans until one changes nothing\n", states, most))
	}
}
