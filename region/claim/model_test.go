// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// The model consists of peers, a plane and arbiters. Every message between them is a separate step.
// The arbiters run the production code: decide, round and phaseUnder.

// modelClaim is a RegionClaim; uid 0 means none.
type modelClaim struct {
	uid    int
	phase  v1alpha1.RegionClaimPhase
	holder int // UID of the holder
}

type modelPeer struct {
	claim    modelClaim
	saved    *modelClaim // the claim that a restore brings back
	silent   bool
	left     bool // the peer has left the ring
	restored bool
	made     int // number of claims so far
}

type modelRecord struct {
	decision decision
	version  int
}

// statusWrite is a write in flight to a peer.
type statusWrite struct {
	peer int
	told modelClaim
}

type modelArbiter struct {
	copies   []modelClaim
	contacts []contact
	left     []bool // the arbiter knows that the peer left
	read     modelRecord
	round    *round
	flying   []statusWrite
}

type model struct {
	peers    []modelPeer
	record   modelRecord
	arbiters []modelArbiter
	budget   budget
}

// budget is how many events of each kind may still occur.
type budget struct {
	create, remove, silence, save, restore, leave, restart, lost int
}

// created returns the creation time of a claim: a claim that is made later has an earlier creation
// time, as with a clock that is behind. Only the choice between claims may depend on it.
func created(uid int) time.Time { return time.Unix(int64(1000-uid), 0).UTC() }

var peerNames = []region.PeerName{"p0", "p1", "p2", "p3"}

func claimUID(uid int) types.UID { return types.UID(rune('A' + uid)) }

// numberOf reverses claimUID.
func numberOf(uid types.UID) int {
	if uid == "" {
		return 0
	}
	return int(uid[0]) - 'A'
}

func newModel(peers, arbiters int) *model {
	m := &model{peers: make([]modelPeer, peers)}
	for range arbiters {
		m.arbiters = append(m.arbiters, newModelArbiter(peers))
	}
	return m
}

func newModelArbiter(peers int) modelArbiter {
	return modelArbiter{copies: make([]modelClaim, peers), contacts: make([]contact, peers), left: make([]bool, peers)}
}

func (m *model) clone() *model {
	c := *m
	c.peers = slices.Clone(m.peers)
	c.arbiters = slices.Clone(m.arbiters)
	for i := range c.arbiters {
		a := &c.arbiters[i]
		a.copies, a.contacts, a.left = slices.Clone(a.copies), slices.Clone(a.contacts), slices.Clone(a.left)
		a.flying = slices.Clone(a.flying)
		if a.round != nil {
			r := *a.round
			a.round = &r
		}
	}
	return &c
}

// key identifies a state. Arbiters are interchangeable. A version matters only by whether it is
// still current.
func (m *model) key() string {
	b := m.world(nil)
	for _, n := range []int{m.budget.create, m.budget.remove, m.budget.silence, m.budget.save, m.budget.restore, m.budget.leave, m.budget.restart, m.budget.lost} {
		b = append(b, byte(n))
	}
	keys := make([]string, len(m.arbiters))
	for i, a := range m.arbiters {
		var k []byte
		for p, c := range a.copies {
			k = append(c.append(k), byte(a.contacts[p]), bit(a.left[p]))
		}
		k = append(k, a.read.decision.uid...)
		if r := a.round; r != nil {
			k = append(k, 'r', byte(r.step), byte(r.tries), bit(a.read.version == m.record.version), bit(r.again), bit(r.view.left), byte(r.view.holder), bit(r.view.awaiting))
			k = append(append(k, r.view.decision.uid...), r.verdict.winner.uid...)
			for _, c := range r.view.candidates {
				k = append(append(k, c.uid...), byte(c.contact), bit(c.bound.IsZero()))
			}
		}
		flying := make([]string, len(a.flying))
		for n, w := range a.flying {
			flying[n] = string(w.told.append([]byte{byte(w.peer)}))
		}
		slices.Sort(flying)
		keys[i] = string(k) + "/" + strings.Join(flying, ",")
	}
	slices.Sort(keys)
	return string(b) + strings.Join(keys, "|")
}

// world appends the content of the peers and the plane.
func (m *model) world(b []byte) []byte {
	for _, p := range m.peers {
		b = append(p.claim.append(b), bit(p.silent), bit(p.left), bit(p.restored), byte(p.made))
		if p.saved != nil {
			b = p.saved.append(append(b, 's'))
		}
	}
	return append(append(b, m.record.decision.peer...), m.record.decision.uid...)
}

func (c modelClaim) append(b []byte) []byte {
	phase := byte('-')
	if c.phase != "" {
		phase = c.phase[0]
	}
	return append(b, byte(c.uid), phase, byte(c.holder))
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// step is one possible event.
type step struct {
	what string
	at   int // peer
	by   int // arbiter; -1: none
	do   func(*model)
}

// steps returns all events that are possible now.
func (m *model) steps() []step {
	var all []step
	can := func(what string, p int, do func(*model)) {
		all = append(all, step{what, p, -1, do})
	}
	for p, peer := range m.peers {
		if peer.claim.uid == 0 && m.budget.create > 0 {
			can("create", p, func(m *model) {
				m.budget.create--
				m.create(p)
			})
		}
		if peer.claim.uid != 0 && m.budget.remove > 0 {
			can("remove", p, func(m *model) { m.budget.remove--; m.peers[p].claim = modelClaim{} })
		}
		if !peer.silent && m.budget.silence > 0 {
			can("silence", p, func(m *model) { m.budget.silence--; m.peers[p].silent = true })
		}
		if peer.silent {
			can("revive", p, func(m *model) { m.peers[p].silent = false })
		}
		if m.budget.save > 0 {
			can("save", p, func(m *model) { m.budget.save--; m.peers[p].saved = new(m.peers[p].claim) })
		}
		if peer.saved != nil && m.budget.restore > 0 {
			can("restore", p, func(m *model) {
				m.budget.restore--
				m.peers[p].claim, m.peers[p].restored = *m.peers[p].saved, true
			})
		}
		if !peer.left && m.budget.leave > 0 {
			can("leave", p, func(m *model) { m.budget.leave--; m.peers[p].left = true })
		}
	}
	for i := range m.arbiters {
		m.arbiterSteps(i, func(what string, p int, do func(*model)) { all = append(all, step{what, p, i, do}) })
	}
	return all
}

// arbiterSteps adds the events of one arbiter: observe, act, lose a message.
func (m *model) arbiterSteps(i int, can func(string, int, func(*model))) {
	a := &m.arbiters[i]
	for p, peer := range m.peers {
		if !peer.silent && !peer.left && (a.copies[p] != peer.claim || a.contacts[p] != fresh) {
			can("sees", p, func(m *model) { m.see(i, p) })
		}
		if peer.silent && a.contacts[p] != silent {
			can("misses", p, func(m *model) { m.arbiters[i].contacts[p] = silent })
		}
		if peer.left && !a.left[p] {
			can("drops", p, func(m *model) { m.arbiters[i].left[p] = true })
		}
	}
	for n, w := range a.flying {
		can("lands", w.peer, func(m *model) { m.land(i, n) })
	}
	if m.budget.restart > 0 {
		can("restarts", 0, func(m *model) {
			m.budget.restart--
			flying := m.arbiters[i].flying
			m.arbiters[i] = newModelArbiter(len(m.peers))
			m.arbiters[i].flying = flying
		})
	}
	switch {
	case a.round == nil && len(a.flying) < 2 && m.occasion(i):
		can("begins", 0, func(m *model) {
			m.begin(i)
			m.goOn(i, false)
		})
	case a.round != nil:
		can("goes on", 0, func(m *model) { m.goOn(i, false) })
		if v := a.round.next().verb; m.budget.lost > 0 && (v == write || v == erase) {
			can("loses a reply", 0, func(m *model) { m.budget.lost--; m.goOn(i, true) })
		}
	}
}

func (m *model) create(p int) {
	m.peers[p].made++
	m.peers[p].claim = modelClaim{uid: 8*p + m.peers[p].made}
}

func (m *model) see(i, p int) {
	m.arbiters[i].copies[p], m.arbiters[i].contacts[p] = m.peers[p].claim, fresh
}

func (m *model) land(i, n int) {
	w := m.arbiters[i].flying[n]
	m.arbiters[i].flying = slices.Delete(m.arbiters[i].flying, n, n+1)
	if p := &m.peers[w.peer]; !p.silent && p.claim.uid == w.told.uid {
		p.claim = w.told
	}
}

// begin starts a round with the cached state of arbiter i. Its callers execute the first command,
// the read of the decision, in the same step: caches may be arbitrarily stale anyway.
func (m *model) begin(i int) {
	m.arbiters[i].round = newRound(m.view(i), time.Unix(2, 0).UTC())
}

// occasion reports whether arbiter i has work: it would change the decision that it knows, or a
// status, or the recorded decision is not the one that it knows.
func (m *model) occasion(i int) bool {
	v := m.view(i)
	return decide(v).act != keep || len(m.news(i, v.decision)) > 0 || v.decision != m.record.decision
}

func (m *model) view(i int) view {
	a := &m.arbiters[i]
	v := view{decision: a.read.decision, settled: true}
	for p, c := range a.copies {
		if a.left[p] {
			continue
		}
		v.awaiting = v.awaiting || a.contacts[p] == awaited
		if c.uid == 0 {
			continue
		}
		seen := candidate{peer: peerNames[p], cluster: types.UID(peerNames[p]), contact: a.contacts[p], uid: claimUID(c.uid), created: created(c.uid)}
		if c.phase == v1alpha1.RegionClaimBound {
			seen.bound = time.Unix(1, 0).UTC()
		}
		v.candidates = append(v.candidates, seen)
	}
	for p := range a.copies {
		if v.decision.peer == peerNames[p] {
			v.holder, v.left, v.departed = a.contacts[p], a.left[p], a.left[p]
		}
	}
	return v
}

// news returns the statuses that arbiter i would write.
func (m *model) news(i int, d decision) []statusWrite {
	a := &m.arbiters[i]
	var all []statusWrite
	for p, was := range a.copies {
		if was.uid == 0 || a.left[p] || a.contacts[p] != fresh {
			continue
		}
		phase, ok := phaseUnder(d, claimUID(was.uid), false, was.phase)
		told := modelClaim{uid: was.uid, phase: phase}
		told.holder = numberOf(d.uid)
		if w := (statusWrite{p, told}); ok && told != was && !slices.Contains(a.flying, w) {
			all = append(all, w)
		}
	}
	return all
}

// goOn executes the next command of arbiter i's round. If lost is true, the arbiter does not get
// the reply.
func (m *model) goOn(i int, lost bool) {
	a := &m.arbiters[i]
	c := a.round.next()
	r := m.carryOut(a, c)
	if lost {
		r = reply{outcome: failed}
	}
	a.round.answer(r)
	if a.round.next().verb != nothing {
		return
	}
	d := a.round.view.decision
	a.read.decision = d
	unread := c.verb == read && r.outcome != done
	a.round = nil
	if !unread {
		a.flying = append(a.flying, m.news(i, d)...)
	}
}

func (m *model) carryOut(a *modelArbiter, c command) reply {
	switch c.verb {
	case read:
		a.read = m.record
		return reply{outcome: done, decision: m.record.decision}
	case write, erase:
		if a.read.version != m.record.version {
			return reply{outcome: stale}
		}
		m.record = modelRecord{decision: c.decision, version: m.record.version + 1}
		a.read = m.record
		return reply{outcome: done}
	case closeGate:
		return reply{outcome: done}
	}
	for p, peer := range m.peers {
		if peerNames[p] != c.peer {
			continue
		}
		switch {
		case peer.silent:
			return reply{outcome: failed}
		case claimUID(peer.claim.uid) != c.uid:
			return reply{outcome: missing}
		}
		return reply{outcome: done}
	}
	return reply{outcome: failed}
}

// wrong describes a violation, if there is one: two claims of one region that the peers serve as
// Bound. A peer that left the ring, or was restored, may serve an old status.
func (m *model) wrong() string {
	var bound []string
	for p, peer := range m.peers {
		if peer.claim.phase == v1alpha1.RegionClaimBound && !peer.left && !peer.restored {
			bound = append(bound, fmt.Sprintf("u%d in p%d", peer.claim.uid, p))
		}
	}
	if len(bound) > 1 {
		return "two are Bound: " + strings.Join(bound, " and ")
	}
	return ""
}

// rest returns a copy of the model in which all running steps are complete and the arbiters have
// worked until nothing changes, without further events.
func (m *model) rest() *model {
	m = m.clone()
	for i := range m.arbiters {
		for m.arbiters[i].round != nil {
			m.goOn(i, false)
		}
	}
	for range 12 {
		before := string(m.world(nil))
		for i := range m.arbiters {
			for len(m.arbiters[i].flying) > 0 {
				m.land(i, 0)
			}
			for p, peer := range m.peers {
				m.arbiters[i].left[p] = peer.left
				if peer.silent {
					m.arbiters[i].contacts[p] = silent
				} else {
					m.see(i, p)
				}
			}
			m.begin(i)
			for m.arbiters[i].round != nil {
				m.goOn(i, false)
			}
		}
		flying := slices.ContainsFunc(m.arbiters, func(a modelArbiter) bool { return len(a.flying) > 0 })
		if !flying && string(m.world(nil)) == before {
			break
		}
	}
	return m
}

// idle reports whether no arbiter has work in progress.
func (m *model) idle() bool {
	return !slices.ContainsFunc(m.arbiters, func(a modelArbiter) bool { return a.round != nil || len(a.flying) > 0 })
}

// unfinished describes a violation, if there is one, in a state in which all arbiters are at rest.
func (m *model) unfinished() string {
	held := m.record.decision
	claimed := false
	for p, peer := range m.peers {
		if peer.left || peer.silent || peer.claim.uid == 0 {
			continue
		}
		claimed = true
		want := v1alpha1.RegionClaimConflict
		if held.uid == claimUID(peer.claim.uid) {
			want = v1alpha1.RegionClaimBound
		}
		if peer.claim.phase != want {
			return fmt.Sprintf("u%d in p%d is %q and should be %s under %v", peer.claim.uid, p, peer.claim.phase, want, held)
		}
		if claimUID(peer.claim.holder) != held.uid {
			return fmt.Sprintf("u%d in p%d names u%d as the holder, which is %s", peer.claim.uid, p, peer.claim.holder, held.uid)
		}
	}
	if claimed && held.none() {
		return "a region is claimed and has no holder"
	}
	for p, peer := range m.peers {
		if peerNames[p] == held.peer && (peer.left || !peer.silent && claimUID(peer.claim.uid) != held.uid) {
			return fmt.Sprintf("%v holds the region and its claim is gone", held)
		}
	}
	return ""
}
