// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// contest decides between RegionClaims that users applied in several peers, without a plane that
// records decisions. The fan-out protocol cannot adopt any of them, because each blocks the name in
// its peer. So the status Bound of one claim is the decision.
//
// If wrote is true, contest wrote statuses, or may have: the caller waits until the caches show
// them.
func (a *Arbiter) contest(ctx context.Context, s *regionState, r ruling, now time.Time) (_ ruling, wrote bool, _ error) {
	open, stale := contested(s)
	if !open {
		return r, false, nil // the fan-out protocol decides
	}
	v := a.view(s, now)
	winner, ok := v.choose()
	switch {
	case !ok:
		return r, false, nil
	case !winner.bound.IsZero():
		d := decision{peer: winner.peer, uid: winner.uid, since: winner.bound}
		return ruling{decision: d, firm: winner.contact == fresh}, false, nil
	case len(v.candidates) == 1 && !stale:
		return r, false, nil // a single claim is adopted by the coordinator
	case slices.ContainsFunc(v.candidates, func(c candidate) bool { return c.leaving }):
		r.undecided = "it is not decided yet: a claim of this name is being deleted"
		return r, false, nil
	case !allFresh(s.contacts):
		r.undecided = "it is not decided yet: not every peer is reachable"
		return r, false, nil
	}
	b := &bid{arbiter: a, scene: s, view: v, winner: winner, since: now.UTC().Truncate(time.Second)}
	if !v.settled {
		return r, false, nil
	}
	if wait := a.pauseAfterBid(s.key, winner.uid, now); wait > 0 {
		s.later(wait)
		return r, false, nil
	}
	won, err := b.make(ctx)
	if won {
		a.wonBid(s.key, winner.uid, now)
		a.opts.Observer.decided(ctx, DecideEvent{Region: s.key, Holder: winner.peer, Since: b.since})
	} else {
		s.later(unsettled)
	}
	return r, b.wrote, err
}

// contested returns whether the decision is open: none of the claims in effect is under the fan-out
// protocol. In this case, stale means that a claim still has the Conflict of an earlier contest.
func contested(s *regionState) (open, stale bool) {
	for _, at := range s.places {
		if at.claim == nil || !inEffect(at.claim) {
			continue
		}
		if stageOf(at.claim) != "" {
			return false, false
		}
		stale = stale || statusIn(at.claim).Phase == v1alpha1.RegionClaimConflict
	}
	return true, stale
}

// pauseAfterBid returns how long the claim uid must wait before it bids again, if it won the last
// bid for k. Zero or less means that it need not wait. The pause bounds the writes if another
// client keeps overwriting the decision.
func (a *Arbiter) pauseAfterBid(k region.Key, uid types.UID, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last := a.lastWonBid[k]; last != nil && last.uid == uid {
		return last.next.Sub(now)
	}
	return 0
}

func (a *Arbiter) wonBid(k region.Key, uid types.UID, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last := a.lastWonBid[k]; last == nil || last.uid != uid {
		a.lastWonBid[k] = &statementRecord{uid: uid}
	}
	a.lastWonBid[k].take(now)
}

// bid is one attempt to bind a claim by its status alone.
//
// Two bids never both succeed, because of the order of their requests. A bid
//
//  1. reads its own claim,
//  2. reads the claims of all other peers,
//  3. writes Conflict to each of them, under the resourceVersion that it read,
//  4. writes Bound to its own claim, under the resourceVersion that it read.
//
// A bid stops if a claim that it reads is Bound, or if one of its writes fails. Of two bids, at
// least one reads the claim of the other in step 2, and writes Conflict to it in step 3. The other
// bid writes Bound to the same claim in step 4. At most one of these two writes succeeds. A claim
// in Conflict is set to Pending before it bids, so that an older Conflict is not mistaken for a
// rival's new one.
type bid struct {
	arbiter *Arbiter
	scene   *regionState
	view    view
	winner  candidate
	since   time.Time
	wrote   bool
}

// make makes the bid. Without an error, won is false if the bid must be made again later: another
// bid is running, the caches are stale, or make has only set a claim in Conflict to Pending.
func (b *bid) make(ctx context.Context) (won bool, err error) {
	ours := b.arbiter.peer(b.winner.peer)
	if ours == nil {
		return false, nil
	}
	claim, err := b.read(ctx, ours)
	if err != nil || claim == nil || claim.GetUID() != b.winner.uid || !biddable(claim) {
		return false, err
	}
	if statusIn(claim).Phase == v1alpha1.RegionClaimConflict {
		_, err := b.write(ctx, ours, reopened(claim), ruling{undecided: notDecided})
		return false, err
	}
	rivals, ok, err := b.rivals(ctx)
	if err != nil || !ok || len(rivals) == 0 {
		return false, err
	}
	r := ruling{decision: decision{peer: b.winner.peer, uid: b.winner.uid, since: b.since}, firm: true}
	for _, rival := range rivals {
		if done, err := b.write(ctx, rival.at, rival.claim, r); !done {
			return false, err
		}
	}
	return b.write(ctx, ours, claim, r)
}

// rival is a claim, as it was read, that loses if the bid wins.
type rival struct {
	at    *peer
	claim *unstructured.Unstructured
}

// rivals reads the claims of all other peers. ok is false if the bid must stop. The bid writes
// nothing before rivals has read all of them, because the last one may stop the bid.
func (b *bid) rivals(ctx context.Context) (_ []rival, ok bool, _ error) {
	var all []rival
	for _, name := range slices.Sorted(maps.Keys(b.scene.contacts)) {
		if name == b.winner.peer {
			continue
		}
		at := b.arbiter.peer(name)
		if at == nil {
			return nil, false, nil
		}
		claim, err := b.read(ctx, at)
		switch {
		case err != nil:
			return nil, false, err
		case claim == nil, !inEffect(claim):
			continue // a guard or a reservation, which cannot be committed while our claim exists
		case !biddable(claim), b.view.precedes(b.candidate(at, claim), b.winner) < 0:
			return nil, false, nil
		}
		all = append(all, rival{at, claim})
	}
	return all, true, nil
}

// biddable reports whether a bid may write to a claim, as it was read: the claim is not under the
// fan-out protocol and is not being deleted, and no arbiter has written Bound to it.
func biddable(claim *unstructured.Unstructured) bool {
	return stageOf(claim) == fanoutv1alpha1.Stage("") && !leaving(claim) && statusIn(claim).Phase != v1alpha1.RegionClaimBound
}

// reopened returns a copy of claim without its status.
func reopened(claim *unstructured.Unstructured) *unstructured.Unstructured {
	claim = claim.DeepCopy()
	unstructured.RemoveNestedField(claim.Object, "status")
	return claim
}

func (b *bid) candidate(p *peer, claim *unstructured.Unstructured) candidate {
	c := candidate{peer: p.name, uid: claim.GetUID(), created: claim.GetCreationTimestamp().UTC()}
	if uid := p.uid.Load(); uid != nil {
		c.cluster = *uid
	}
	return c
}

// read returns the claim in a peer, nil if it has none.
func (b *bid) read(ctx context.Context, p *peer) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, b.arbiter.opts.CallTimeout)
	defer cancel()
	claim, err := p.claimClient(b.scene.key).Get(ctx, b.scene.key.Name, metav1.GetOptions{})
	switch {
	case absent(err):
		return nil, nil
	case err != nil:
		return nil, &region.Error{Peer: p.name, Region: b.scene.key, Op: "read RegionClaim", Err: err}
	}
	return claim, nil
}

// write reports r in the status of claim, as it was read. done is false if the claim has changed
// since.
func (b *bid) write(ctx context.Context, p *peer, claim *unstructured.Unstructured, r ruling) (done bool, err error) {
	status, ok := reportOn(claim, r, nil, time.Now())
	if !ok {
		return true, nil
	}
	desired, err := identified(claim, &status)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.arbiter.opts.CallTimeout)
	defer cancel()
	wrote, err := loop.Apply(ctx, p.claimClient(b.scene.key), claim, desired, FieldManager, "status")
	b.wrote = b.wrote || wrote
	switch {
	case absent(err), apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, &region.Error{Peer: p.name, Region: b.scene.key, Op: "report RegionClaim", Err: err}
	}
	if wrote {
		b.arbiter.opts.Observer.reported(ctx, reportEvent(b.scene.key, p.name, claim, status))
	}
	return true, nil
}

// reportEvent returns the event for status s, which was written over claim.
func reportEvent(k region.Key, peer region.PeerName, claim *unstructured.Unstructured, s report) ReportEvent {
	e := ReportEvent{Region: k, Peer: peer, UID: claim.GetUID(), Before: statusIn(claim).Phase, Phase: s.Phase}
	if c := meta.FindStatusCondition(s.Conditions, string(v1alpha1.RegionClaimConditionBound)); c != nil {
		e.Reason, e.Message = c.Reason, c.Message
	}
	return e
}

// peer returns the engaged peer of this name, or nil.
func (a *Arbiter) peer(name region.PeerName) *peer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.peers[name]
}
