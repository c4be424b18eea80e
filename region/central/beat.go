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

// beatInterval is how soon a change of health is noticed. A beat does no I/O.
const beatInterval = 500 * time.Millisecond

// signs are what a connection shows, as far as a status says it.
type signs struct {
	state    region.HealthState
	refused  bool // the credentials are
	rotation bool
	unfit    bool // newer credentials are refused
	other    bool // cluster
}

func signsOf(h region.Health) signs {
	return signs{
		state: h.State, refused: refused(h.Err), rotation: h.Rotation != nil, unfit: refused(h.Rotation),
		other: errors.Is(h.Rotation, region.ErrOtherCluster) || errors.Is(h.Err, region.ErrOtherCluster),
	}
}

// refused says whether err is the answer of a peer that refuses credentials.
func refused(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

// beat looks at the health of all engaged peers, since connections do not tell when it changes.
func (p *Peers) beat(ctx context.Context) {
	tick := time.NewTicker(beatInterval)
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

// changed says whether the health is not what it was at the last beat.
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
