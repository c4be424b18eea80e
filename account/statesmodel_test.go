// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// modelPeer is a peer of the model: the observation of it, and the operation that its object's
// claim names.
type modelPeer struct {
	observation
	claim string
}

// model is a ring with the objects of one name. Its methods have the documented effects of a
// Coordinator's operations and sweeps: docs/fanout-specification.md.
type model struct {
	peers []*modelPeer

	seesEdits bool
	filled    string // stands for fields that the central plane's API server filled in; only of a kind that sees no edits
	// requested is set if the home has a deletionTimestamp and its removal is not committed. held
	// is set if a sweep has judged the request and holds it, because the namespace is occupied or a
	// member is silent.
	requested, held, occupied bool
}

var errNameHeld = errors.New("an object holds the name")

// contentOf returns the digest of a content with an origin.
func contentOf(bare string, origin types.UID) string {
	if origin == "" {
		return bare
	}
	return bare + " for " + string(origin)
}

var (
	anyBare   = rapid.SampledFrom([]string{"a", "a", "b", "c"})
	anyOrigin = rapid.SampledFrom([]types.UID{"", "ours", "ours", "ours", "theirs"})
	anyMember = rapid.SampledFrom([]fanoutv1alpha1.PeerState{
		fanoutv1alpha1.PeerActive, fanoutv1alpha1.PeerActive, fanoutv1alpha1.PeerActive, fanoutv1alpha1.PeerActive, fanoutv1alpha1.PeerActive,
		fanoutv1alpha1.PeerJoining, fanoutv1alpha1.PeerQuarantined, "",
	})
)

// drawReplica returns an object and the operation in its claim. If home is true, the object is a
// home. Otherwise it is a replica or a reservation, or has no claim or an unreadable one; nil for
// no object.
func (m *model) drawReplica(t *rapid.T, home bool) (*replica, string) {
	kinds := []string{"none", "none", "without claim", "unreadable", "reserved", "replica", "replica", "replica"}
	if home {
		kinds = []string{"home", "home", "home", "home", "removed home", "reserved home"}
	}
	kind := rapid.SampledFrom(kinds).Draw(t, "object")
	if kind == "none" {
		return nil, ""
	}
	bare, origin := anyBare.Draw(t, "content"), anyOrigin.Draw(t, "origin")
	c := &replica{
		UID: types.UID(fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "uid"))), Bare: bare, Origin: origin, Home: home,
		Terminating: rapid.IntRange(0, 7).Draw(t, "terminating") == 0, Ready: rapid.IntRange(0, 3).Draw(t, "ready") > 0,
	}
	switch kind {
	case "without claim":
		return c, ""
	case "unreadable":
		c.Bad = "spec.fanout.claim is a text"
		return c, ""
	case "reserved", "reserved home":
		c.Stage = fanoutv1alpha1.StageReserved
	case "removed home":
		c.Stage = fanoutv1alpha1.StageRemoving
	default:
		c.Stage = fanoutv1alpha1.StageActive
	}
	c.Revision, c.Digest = rapid.Int64Range(1, 3).Draw(t, "revision"), contentOf(bare, origin)
	if m.seesEdits && c.Stage == fanoutv1alpha1.StageActive && rapid.IntRange(0, 3).Draw(t, "edited") == 0 {
		c.Digest = contentOf(anyBare.Draw(t, "content of the revision"), anyOrigin.Draw(t, "origin of the revision"))
	}
	return c, rapid.SampledFrom([]string{"one", "one", "one", "one", "two"}).Draw(t, "claim")
}

// drawModel returns a ring of two or three peers in an arbitrary state, with one home at most: the
// protocol allows no second one.
func drawModel(t *rapid.T) *model {
	m := &model{seesEdits: rapid.IntRange(0, 3).Draw(t, "sees edits") > 0, occupied: rapid.IntRange(0, 3).Draw(t, "occupied") == 0}
	names := []region.PeerName{"eu", "us", "ap"}[:rapid.IntRange(2, 3).Draw(t, "peers")]
	home := rapid.SampledFrom(append(slices.Clone(names), "nowhere")).Draw(t, "home")
	for _, name := range names {
		p := &modelPeer{observation: observation{peer: name, member: anyMember.Draw(t, "member")}}
		if rapid.IntRange(0, 4).Draw(t, "silent") == 0 {
			p.err = errSilent
		}
		p.copy, p.claim = m.drawReplica(t, name == home)
		m.see(p)
		m.peers = append(m.peers, p)
	}
	return m
}

// see sets the digest of an object's present content, as replicaOf does.
func (m *model) see(p *modelPeer) {
	if c := p.copy; c != nil && m.seesEdits && c.Stage == fanoutv1alpha1.StageActive {
		c.Actual = contentOf(c.Bare, c.Origin)
	}
}

func (m *model) observed() []observation {
	var all []observation
	for _, p := range m.peers {
		s := p.observation
		if s.copy != nil {
			s.copy = new(*s.copy)
		}
		all = append(all, s)
	}
	return all
}

func (m *model) clone() *model {
	other := *m
	other.peers = nil
	for i, s := range m.observed() {
		other.peers = append(other.peers, &modelPeer{observation: s, claim: m.peers[i].claim})
	}
	return &other
}

// home returns the peer that has the committed home; nil if no peer has a committed home.
func (m *model) home() *modelPeer {
	for _, p := range m.peers {
		if p.copy != nil && p.copy.Home && p.copy.committed() {
			return p
		}
	}
	return nil
}

// any reports whether f is true for any peer.
func (m *model) any(f func(*modelPeer) bool) bool { return slices.ContainsFunc(m.peers, f) }

func (m *model) index(of *modelPeer) int { return slices.Index(m.peers, of) }

func (p *modelPeer) silent() bool { return p.err != nil }

// missed reports whether the peer is a member and is unreachable.
func (p *modelPeer) missed() bool { return p.silent() && p.counts() }

func (p *modelPeer) holdsName() bool { return p.copy != nil }

// homeless reports whether the peer has an Active object or one with an unreadable claim. In a ring
// without a home, this object holds the name.
func (p *modelPeer) homeless() bool {
	return p.copy != nil && (p.copy.Stage == fanoutv1alpha1.StageActive || p.copy.Bad != "")
}

// applied reports whether the peer has an object without a claim.
func (p *modelPeer) applied() bool { return p.copy != nil && p.copy.Stage == "" && p.copy.Bad == "" }

// put gives p an Active object.
func (m *model) put(p *modelPeer, claim string, home bool, revision int64, bare string, origin types.UID) {
	p.claim, p.copy = claim, &replica{
		UID: types.UID("of " + claim), Stage: fanoutv1alpha1.StageActive, Home: home, Revision: revision,
		Digest: contentOf(bare, origin), Bare: bare, Origin: origin, Ready: true,
	}
	m.see(p)
}

// add creates the object in all peers or in none. Its error is why it created none.
func (m *model) add(bare string, origin types.UID) error {
	switch {
	case m.any((*modelPeer).silent):
		return errSilent
	case m.any(func(p *modelPeer) bool { return !p.counts() }):
		return errors.New("a configured peer is no member")
	case m.any((*modelPeer).holdsName):
		return errNameHeld
	}
	for i, p := range m.peers {
		m.put(p, "one", i == 0, 1, bare, origin)
	}
	return nil
}

// adopt puts the object that was applied in a peer under the protocol. Its error is why it changed
// nothing.
func (m *model) adopt(peer region.PeerName) error {
	switch {
	case m.any((*modelPeer).silent):
		return errSilent
	case m.any(func(p *modelPeer) bool { return !p.counts() }):
		return errors.New("a configured peer is no member")
	case m.any(func(p *modelPeer) bool { return p.holdsName() && p.peer != peer }):
		return errNameHeld
	}
	for _, p := range m.peers {
		if c := p.copy; p.peer == peer {
			m.put(p, "one", true, 1, c.Bare, c.Origin)
			p.copy.Terminating = c.Terminating
		}
	}
	m.bring()
	return nil
}

// update makes a content the next revision of the home, and brings it to the other peers.
func (m *model) update(bare string, origin types.UID) error {
	home := m.home()
	if home == nil || home.silent() || home.copy.Stage != fanoutv1alpha1.StageActive {
		return errSilent
	}
	if c := home.copy; c.Digest != contentOf(bare, origin) || c.edited() {
		m.put(home, home.claim, true, c.Revision+1, bare, origin)
	}
	m.bring()
	return nil
}

// bring makes the replicas equal to the home. It changes no object in a silent peer, with another
// claim, without a readable claim, or with a deletion under way.
func (m *model) bring() {
	home := m.home()
	if home == nil || home.silent() || home.copy.Stage != fanoutv1alpha1.StageActive {
		return
	}
	for _, p := range m.peers {
		if p != home && !p.silent() && p.takesReplica(home) {
			m.put(p, home.claim, false, home.copy.Revision, home.copy.Bare, home.copy.Origin)
		}
	}
	home.copy.Ready = true
}

func (p *modelPeer) takesReplica(home *modelPeer) bool {
	if p.copy == nil {
		return p.counts() || p.member == fanoutv1alpha1.PeerJoining
	}
	return !p.obstructed(home)
}

// obstructed reports whether the peer has an object that no operation changes, because it is not of
// the home's operation, or is being deleted.
func (p *modelPeer) obstructed(home *modelPeer) bool {
	return p.copy != nil && (p.claim != home.claim || p.copy.Terminating)
}

// remove removes the home and its replicas from all peers. Its error is why it removed nothing.
func (m *model) remove() error {
	home := m.home()
	switch {
	case m.any((*modelPeer).silent):
		return errSilent
	case m.occupied && home.copy.Stage != fanoutv1alpha1.StageRemoving:
		return errors.New("its namespace has objects")
	}
	claim := home.claim
	for _, p := range m.peers {
		if p.claim == claim {
			p.copy, p.claim = nil, ""
		}
	}
	return nil
}

// judgeDeletion commits or holds a requested removal of the home. Its error is why it could not
// judge the request.
func (m *model) judgeDeletion() error {
	home := m.home()
	switch {
	case !m.requested || home == nil:
		return nil
	case home.silent():
		return errSilent
	}
	if m.held = m.occupied || m.any((*modelPeer).missed); !m.held {
		m.requested, home.copy.Stage = false, fanoutv1alpha1.StageRemoving
	}
	return nil
}

// sweep does the work of Coordinators and API servers that no plan asks for: it ends reservations
// and deletions, commits edits, and deletes replicas whose home is known to be gone.
func (m *model) sweep() {
	_ = m.judgeDeletion() // a later sweep tries again
	home := m.home()
	for _, p := range m.peers {
		if c := p.copy; c != nil && c.Bad == "" && !p.silent() {
			m.sweepObject(p, home != nil && home.claim == p.claim)
		}
	}
	m.bring()
}

// sweepObject sweeps the object of a peer. led is true if the object has the claim of the ring's
// home.
func (m *model) sweepObject(p *modelPeer, led bool) {
	c, complete := p.copy, !m.any((*modelPeer).silent)
	switch {
	case c.Home && c.Stage == fanoutv1alpha1.StageRemoving:
		_ = m.remove()
	case c.Terminating, c.Stage == fanoutv1alpha1.StageReserved && (c.Home || !led && complete):
		p.copy, p.claim = nil, ""
	case c.Stage != fanoutv1alpha1.StageActive:
	case c.Home:
		m.settleRevisions(p)
	case !led && complete && m.witness(p):
		p.copy, p.claim = nil, ""
	}
}

// witness reports whether another member proves that the home of a replica is gone, because that
// member has no object of the replica's claim. In a ring of two the other member proves nothing: it
// may have had the home.
func (m *model) witness(of *modelPeer) bool {
	return len(m.peers) > 2 && m.any(func(p *modelPeer) bool { return p != of && p.counts() && p.claim != of.claim })
}

// settleRevisions commits a new revision if the home was edited or a replica contradicts the home.
// The new revision has the home's content, and a higher number than every replica of its claim in a
// reachable peer.
func (m *model) settleRevisions(home *modelPeer) {
	c := home.copy
	latest, contradicted := c.Revision, c.edited() && m.seesEdits
	for _, p := range m.peers {
		if p.silent() || p == home || p.copy == nil || p.claim != home.claim || p.copy.Stage != fanoutv1alpha1.StageActive {
			continue
		}
		contradicted = contradicted || p.copy.Revision > c.Revision || p.copy.Revision == c.Revision && p.copy.Digest != c.Digest
		latest = max(latest, p.copy.Revision)
	}
	if contradicted {
		m.put(home, home.claim, true, latest+1, c.Bare, c.Origin)
	}
}

// text returns the state of the model, to find out whether a step has changed it.
func (m *model) text() string {
	text := fmt.Sprint(m.requested, m.held)
	for _, p := range m.peers {
		text += fmt.Sprintf("\n%s %s err=%v claim=%q", p.peer, p.member, p.err, p.claim)
		if p.copy != nil {
			text += fmt.Sprintf(" %+v", *p.copy)
		}
	}
	return text
}
