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

// contest rules over RegionClaims that people applied in several peers where no plane
// records decisions. The fan-out protocol adopts none of them, since each holds the
// name in its peer; for the same reason it can commit no other. So the claims are
// theirs who apply them, and the decision is the status Bound of one of them.
//
// told says that statuses were written, or may have been: the copies follow.
func (a *Arbiter) contest(ctx context.Context, s *scene, r ruling, now time.Time) (_ ruling, told bool, _ error) {
	stale := false
	for _, at := range s.places {
		if at.claim == nil || !inForce(at.claim) {
			continue
		}
		if stageOf(at.claim) != "" {
			return r, false, nil // the protocol's
		}
		stale = stale || statusIn(at.claim).Phase == v1alpha1.RegionClaimConflict
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
		return r, false, nil // whoever is alone is adopted
	case slices.ContainsFunc(v.candidates, func(c candidate) bool { return c.leaving }):
		r.undecided = "it is not decided yet: a claim of this name is being deleted"
		return r, false, nil
	case !allFresh(s.contacts):
		r.undecided = "it is not decided yet: not every peer answers"
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
	}
	if !won {
		s.later(unsettled)
	}
	return r, b.wrote, err
}

// pauseAfterBid is how long a claim waits that was bound before: somebody who takes the
// decision back again and again makes nobody write without end.
func (a *Arbiter) pauseAfterBid(k region.Key, uid types.UID, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last := a.won[k]; last != nil && last.uid == uid {
		return last.next.Sub(now)
	}
	return 0
}

func (a *Arbiter) wonBid(k region.Key, uid types.UID, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last := a.won[k]; last == nil || last.uid != uid {
		a.won[k] = &telling{uid: uid}
	}
	a.won[k].take(now)
}

// bid is one attempt to bind a claim by its status alone.
//
// That two bids never both succeed rests on the order of their requests: a bid reads
// its own claim, then those of all other peers, writes Conflict to each of these as it
// was read, and at last Bound to its own as it was read. Of two bids, one reads the
// claim of the other, because the later of the two claims was read after both were
// there; and its Conflict makes the other's Bound fail, or finds it written. A claim
// in Conflict is no bidder before its status says Pending again, so that no Conflict
// that is there already is taken for one that was written now.
type bid struct {
	arbiter *Arbiter
	scene   *scene
	view    view
	winner  candidate
	since   time.Time
	wrote   bool
}

// make bids. False without an error means that others are at it, or that the copies
// are behind.
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

// rival is a claim that loses if the bid wins, as it was read.
type rival struct {
	at    *peer
	claim *unstructured.Unstructured
}

// rivals reads the claims of all other peers. False means that the bid must not go on.
// Nobody is told anything before all are read: the last one may be why nobody has lost.
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
		case claim == nil, !inForce(claim):
			continue // a guard or a reservation that cannot be committed as long as we stand
		case !biddable(claim), b.view.precedes(b.candidate(at, claim), b.winner) < 0:
			return nil, false, nil
		}
		all = append(all, rival{at, claim})
	}
	return all, true, nil
}

// biddable says whether a claim, as it was read, leaves it open who is Bound.
func biddable(claim *unstructured.Unstructured) bool {
	return stageOf(claim) == fanoutv1alpha1.Stage("") && !leaving(claim) && statusIn(claim).Phase != v1alpha1.RegionClaimBound
}

// reopened is claim as if nothing was ever decided about it.
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

// write tells claim, as it was read. done is false if it is not that any more.
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

// reportEvent is what an Observer is told of a status that was written over claim.
func reportEvent(k region.Key, peer region.PeerName, claim *unstructured.Unstructured, s report) ReportEvent {
	e := ReportEvent{Region: k, Peer: peer, UID: claim.GetUID(), Before: statusIn(claim).Phase, Phase: s.Phase}
	if c := meta.FindStatusCondition(s.Conditions, string(v1alpha1.RegionClaimConditionBound)); c != nil {
		e.Reason, e.Message = c.Reason, c.Message
	}
	return e
}

// peer is an engaged peer, nil if it is not.
func (a *Arbiter) peer(name region.PeerName) *peer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.peers[name]
}
