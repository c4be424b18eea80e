// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/validity"
	"github.com/atoll-dev/atoll/region"
)

// observation is the result of a read, and the error if the read failed.
type observation[T any] struct {
	value T
	err   error
}

func observing[T any](value T, err error) observation[T] { return observation[T]{value, err} }

// checkup holds the observations of one peer. Those after terms are empty if the peer was not reached.
type checkup struct {
	peer     string
	server   string
	reach    error
	terms    []validity.Term
	banner   observation[banner]
	identity observation[fanout.PeerIdentity]
	rights   observation[[]access]
	types    observation[installedTypes]
	set      observation[*fanoutv1alpha1.PeerSet]
	still    bool // no sign of life of the change in set
}

// observeAll reads everything that the checks need, from all peers at once. It returns after at most
// three times readTimeout, in the order of the peers' names.
func (s *session) observeAll(ctx context.Context, d region.Directory) []*checkup {
	var all []*checkup
	byName := map[region.PeerName]*checkup{}
	for p := range d.Snapshot().Peers() {
		c := &checkup{peer: string(p.Name)}
		all, byName[p.Name] = append(all, c), c
	}
	var wg sync.WaitGroup
	var identities region.Results[fanout.PeerIdentity]
	var unidentified error
	wg.Go(func() {
		unidentified = s.observe(ctx, func(c *fanout.Coordinator) (err error) {
			identities, err = c.Identity().Peers(ctx)
			return err
		})
	})
	_, _ = region.Each(ctx, d, "check peer", region.BestEffort(), func(ctx context.Context, conn *region.Conn) (struct{}, error) {
		byName[conn.Peer()].observe(ctx, conn, s.now)
		return struct{}{}, nil
	})
	wg.Wait()
	for _, c := range all {
		c.identity.err = unidentified
	}
	for o := range identities.All() {
		byName[o.Peer].identity = observing(o.Value, o.Err)
	}
	return all
}

// observe reads everything but the identity from one peer.
func (u *checkup) observe(ctx context.Context, conn *region.Conn, now func() time.Time) {
	if config, err := conn.StreamConfig(); err == nil {
		u.server, u.terms = config.Host, validity.Of(config)
	}
	first, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if _, err := conn.UID(first); err != nil && !errors.Is(err, region.ErrIdentityUnknown) {
		u.reach = err
		return
	}
	ctx, cancel = context.WithTimeout(ctx, readTimeout)
	defer cancel()
	u.banner = observing(observeBanner(ctx, conn, now)) // alone, so that other requests do not delay it
	var wg sync.WaitGroup
	wg.Go(func() { u.rights = observing(observeRights(ctx, conn)) })
	wg.Go(func() { u.types = observing(observeTypes(ctx, conn)) })
	wg.Go(func() { u.set = observing(observeSet(ctx, conn)) })
	wg.Wait()
}

// awaitChanges waits for a lease if a change of the membership is under way, and then records in the
// checkups which changes showed no sign of life meanwhile.
func (s *session) awaitChanges(ctx context.Context, d region.Directory, checkups []*checkup) {
	before, after := map[string]*fanoutv1alpha1.PeerSet{}, map[string]*fanoutv1alpha1.PeerSet{}
	changing := false
	for _, u := range checkups {
		before[u.peer] = u.set.value
		changing = changing || u.set.value != nil && u.set.value.Spec.Change != nil
	}
	if !changing {
		return
	}
	lease := s.lease
	if lease == 0 {
		lease = defaultLease
	}
	select {
	case <-time.After(lease):
	case <-ctx.Done():
		return
	}
	for o := range read(ctx, d, "read PeerSet", observeSet).All() {
		after[string(o.Peer)] = o.Value
	}
	still := stillChanges(before, after)
	for _, u := range checkups {
		if set := u.set.value; set != nil && set.Spec.Change != nil {
			u.still = still[set.Spec.Change.ID]
		}
	}
}

// judgeAll returns the findings of all peers. It is pure.
func judgeAll(checkups []*checkup, c commands, now time.Time) []finding {
	var common membership // the part that is the same for all peers
	for _, u := range checkups {
		common.configured = append(common.configured, u.peer)
		common.ring = common.ring || u.set.value != nil
		if u.outside() {
			common.outside = append(common.outside, u.peer)
		}
	}
	var all []finding
	for _, u := range checkups {
		for _, f := range u.judge(common, c, now) {
			f.peer = u.peer
			all = append(all, f)
		}
	}
	return all
}

// outside reports whether the peer itself shows that it is no member of a ring.
func (u *checkup) outside() bool {
	if u.reach != nil || u.set.err != nil {
		return false
	}
	return u.set.value == nil || u.set.value.Spec.Self.State == fanoutv1alpha1.PeerOut
}

// judge returns the findings of one peer. ring is the part of its membership that all peers share.
func (u *checkup) judge(ring membership, c commands, now time.Time) []finding {
	findings := []finding{judgeReach(u.server, u.reach)}
	terms := u.terms
	if u.reach == nil {
		findings = append(findings, judgeIdentity(u.peer, u.identity.value, u.identity.err, c), judgeRights(u.rights.value, u.rights.err, c))
		findings = append(findings, judgeTypes(u.types.value, u.types.err, c)...)
		findings = append(findings, judgeVersion(u.banner.value, u.banner.err), judgeClock(u.banner.value, u.banner.err))
		if certificate := u.banner.value.certificate; certificate != nil {
			terms = append(terms, validity.Term{Kind: serverCertificate, To: certificate.NotAfter})
		}
	}
	for _, t := range terms {
		findings = append(findings, judgeTerm(t, now))
	}
	if u.reach == nil {
		ring.peer, ring.set, ring.still = u.peer, u.set.value, u.still
		findings = append(findings, judgeSet(ring, u.set.err, c)...)
	}
	return findings
}
