// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// unsettled is the requeue delay for a region that other arbiters are deciding.
const unsettled = 500 * time.Millisecond

const (
	notDecided = "it is not decided yet"
	noPlane    = "it is not decided yet: the central plane is unreachable"
)

// work reconciles one region.
func (a *Arbiter) work(ctx context.Context, name string) (time.Duration, error) {
	k, err := region.ParseKey(name)
	if err != nil {
		return 0, nil // not the name of a region
	}
	if !loop.OwnsKey(a.opts.Shard, name) {
		a.forget(k)
		return 0, nil
	}
	now := time.Now()
	s, known := a.observe(k, now)
	if s == nil {
		return 0, nil
	}
	made := a.makeClaims(ctx, s)
	dropped := a.dropClaims(ctx, s)
	var r ruling
	var written bool
	switch {
	case a.decisions == nil:
		r = settledByProtocol(s.standings(), s.contacts)
		if r.decision.none() {
			r, written, err = a.contest(ctx, s, r, now)
		}
		a.note(k, r.decision.none() && len(s.places) > 0)
	case !known && now.Sub(a.began) < a.opts.Patience:
		return a.opts.Patience - now.Sub(a.began), errors.Join(made, dropped)
	case !known:
		r = ruling{undecided: noPlane, blind: true}
		a.note(k, true)
	default:
		r, err = a.settle(ctx, s, now)
	}
	if written {
		return s.again, errors.Join(made, dropped, err) // the caches do not show the writes yet, and enqueue the region when they do
	}
	told := a.reportAll(ctx, s, r)
	return s.again, errors.Join(made, dropped, err, told)
}

// forget drops the state of a region that belongs to another replica.
func (a *Arbiter) forget(k region.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.claimed, k)
	delete(a.open, k)
	delete(a.lastWonBid, k)
}

// note records whether a region is to be reconciled when peers change.
func (a *Arbiter) note(k region.Key, open bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if open {
		a.open[k] = struct{}{}
	} else {
		delete(a.open, k)
	}
}

// standings returns the cached RegionClaims of the region, including guards.
func (s *regionState) standings() []standing {
	var all []standing
	for _, at := range s.places {
		if at.claim != nil {
			all = append(all, standing{peer: at.peer.name, contact: at.contact, claim: at.claim})
		}
	}
	return all
}

// settle decides the holder of the region, or reads the decision. If the cached decision would
// change the phase or the holder in the status of a claim, settle first reads the decision from the
// plane.
func (a *Arbiter) settle(ctx context.Context, s *regionState, now time.Time) (ruling, error) {
	v := a.view(s, now)
	r := ruling{decision: v.decision, undecided: notDecided, firm: !v.decision.none()}
	if v := decide(v); v.act == keep && !s.news(r, now) {
		a.note(s.key, false)
		return r, nil
	}
	c := &clerk{arbiter: a, scene: s, records: &records{
		client: a.plane.Dynamic().Resource(leases).Namespace(a.opts.Namespace), ns: a.opts.Namespace, key: s.key,
	}}
	round := newRound(v, now.UTC().Truncate(time.Second))
	var errs []error
	for command := round.next(); command.verb != nothing; command = round.next() {
		before := round.view.decision
		reply, err := c.carryOut(ctx, command)
		if err != nil {
			errs = append(errs, err)
		}
		round.answer(reply)
		if round.changed {
			a.opts.Observer.decided(ctx, DecideEvent{
				Region: s.key, Before: before.peer, Holder: round.view.decision.peer, Since: round.view.decision.since,
			})
		}
	}
	a.note(s.key, round.again)
	if c.unread {
		return ruling{undecided: noPlane, blind: true}, errors.Join(errs...)
	}
	if round.again && len(errs) == 0 && s.again == 0 {
		s.later(unsettled)
	}
	r.decision, r.firm = round.view.decision, !round.view.decision.none()
	return r, errors.Join(errs...)
}

// news reports whether the ruling changes the phase or the holder in the status of a claim.
func (s *regionState) news(r ruling, now time.Time) bool {
	for _, at := range s.places {
		if at.claim == nil || at.contact != fresh || !inEffect(at.claim) || leaving(at.claim) {
			continue
		}
		if report, ok := reportOn(at.claim, r, at.peer.claimRecords.report(s.key, at.claim), now); ok && !r.decision.none() && report.differs(at.claim) {
			return true
		}
	}
	return false
}
