// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-dev/atoll/region"
)

const (
	// hasty is the time limit of a call that is likely to time out.
	hasty = time.Second
	// reserve is the time after a timeout in which a peer gets no request, if its health probes
	// fail.
	reserve = 5 * time.Second
)

// reach records the peers that let a call time out. Operations still send requests to a peer that
// fails its probes, since probes may be wrong. But each such request has the limit hasty, and
// after a timeout the peer gets no request for the duration reserve: otherwise every operation
// would wait several times CallTimeout. That is safe: a request that is not sent is certainly not
// applied, and the result of a sent request is as unknown after a second as after ten.
type reach struct {
	mu         sync.Mutex
	timedOutAt map[region.PeerName]time.Time // when the last call timed out
	silentAt   map[region.PeerName]time.Time // when the last call got no answer
}

// beginning is how long an API server may forbid requests after its start, although it allows them
// later: it answers before it has read its roles.
const beginning = 15 * time.Second

// noteSilence records the present time if err shows that a call to peer got no answer.
func (r *reach) noteSilence(peer region.PeerName, err error) {
	if err == nil || statusCode(err) != 0 || errors.Is(err, context.Canceled) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.silentAt == nil {
		r.silentAt = map[region.PeerName]time.Time{}
	}
	r.silentAt[peer] = time.Now()
}

// mayBeStarting reports whether a 403 from peer may come from an API server that has not read its
// roles yet: a call to peer got no answer less than the duration beginning ago.
func (r *reach) mayBeStarting(peer region.PeerName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	silence, ok := r.silentAt[peer]
	return ok && time.Since(silence) < beginning
}

// begin returns the time limit of a call. An error means that no call is allowed now.
func (r *reach) begin(c *clusters, peer region.PeerName) (time.Duration, error) {
	conn, err := c.directory.Conn(peer)
	if err != nil || conn.Health().State != region.Unhealthy {
		return c.opts.CallTimeout, nil
	}
	r.mu.Lock()
	at, vain := r.timedOutAt[peer]
	r.mu.Unlock()
	ago := time.Since(at)
	if !vain {
		ago = reserve
	}
	limit := hastily(ago, c.opts.CallTimeout)
	if limit == 0 {
		return 0, fmt.Errorf("%w: it answers no probes and let a call time out %s ago; the next call is allowed after %s",
			region.ErrUnavailable, ago.Round(time.Millisecond), reserve)
	}
	return limit, nil
}

// hastily returns the time limit of a call to a peer that fails its probes. ago is the time since
// the last call to the peer timed out, and whole the usual limit. Zero means that no call is
// allowed.
func hastily(ago, whole time.Duration) time.Duration {
	if ago < reserve {
		return 0
	}
	return min(hasty, whole)
}

// end records whether a call timed out.
func (r *reach) end(peer region.PeerName, timedOut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !timedOut {
		delete(r.timedOutAt, peer)
		return
	}
	if r.timedOutAt == nil {
		r.timedOutAt = map[region.PeerName]time.Time{}
	}
	r.timedOutAt[peer] = time.Now()
}
