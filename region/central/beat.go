// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/atoll-dev/atoll/region"
)

// healthPollInterval bounds how late a change of health is noticed. Reading the health does no I/O.
const healthPollInterval = 500 * time.Millisecond

// signs are the parts of a connection's health that a status reports.
type signs struct {
	state    region.HealthState
	refused  bool // the credentials are rejected
	rotation bool
	unfit    bool // newer credentials are rejected
	other    bool // the credentials reach another cluster
}

func signsOf(h region.Health) signs {
	return signs{
		state: h.State, refused: refused(h.Err), rotation: h.Rotation != nil, unfit: refused(h.Rotation),
		other: errors.Is(h.Rotation, region.ErrOtherCluster) || errors.Is(h.Err, region.ErrOtherCluster),
	}
}

// refused reports whether err means that a peer rejects the credentials.
func refused(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

// pollHealth enqueues each engaged peer whose health has changed, until ctx ends. It polls the health, since connections do
// not report changes of it.
func (p *Peers) pollHealth(ctx context.Context) {
	tick := time.NewTicker(healthPollInterval)
	defer tick.Stop()
	for {
		p.mu.Lock()
		for name, r := range p.records {
			if r.changed() {
				p.queue.Add(name)
			}
		}
		p.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// changed reports whether the health has changed since the previous call. If the peer has become Healthy again, changed
// also calls renew.
func (r *record) changed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.observed == nil {
		return false
	}
	before := r.seen
	r.seen = signsOf(r.observed.conn.Health())
	if before.state == region.Unhealthy && r.seen.state == region.Healthy {
		r.observed.renew()
	}
	return r.seen != before
}
