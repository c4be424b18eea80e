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
	// hasty is the time that a call has which is likely to be in vain.
	hasty = time.Second
	// reserve is how long nobody tries again after one that was.
	reserve = 5 * time.Second
)

// reach remembers the peers that let a call time out. Those that answer no probes either
// are still asked, since probes may be wrong, but what the others wait for is a second in
// a while and not several times CallTimeout in every operation. A request that is not made
// is certainly not applied; one that was made is as unknown after a second as after ten.
type reach struct {
	mu   sync.Mutex
	vain map[region.PeerName]time.Time // when the last call timed out
	mute map[region.PeerName]time.Time // when the last call got no answer
}

// beginning is how long an API server that has just begun may refuse what it will
// grant: it answers before it has read its roles.
const beginning = 15 * time.Second

// heard notes whether a call to peer was answered.
func (r *reach) heard(peer region.PeerName, err error) {
	if err == nil || statusCode(err) != 0 || errors.Is(err, context.Canceled) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mute == nil {
		r.mute = map[region.PeerName]time.Time{}
	}
	r.mute[peer] = time.Now()
}

// begins says whether peer gave no answer a moment ago, so that its refusal is
// perhaps that of a server that has not read its roles yet.
func (r *reach) begins(peer region.PeerName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	silence, ok := r.mute[peer]
	return ok && time.Since(silence) < beginning
}

// begin says how long a call may take. An error says that there is to be none.
func (r *reach) begin(c *Coordinator, peer region.PeerName) (time.Duration, error) {
	conn, err := c.directory.Conn(peer)
	if err != nil || conn.Health().State != region.Unhealthy {
		return c.opts.CallTimeout, nil
	}
	r.mu.Lock()
	at, vain := r.vain[peer]
	r.mu.Unlock()
	ago := time.Since(at)
	if !vain {
		ago = reserve
	}
	limit := hastily(ago, c.opts.CallTimeout)
	if limit == 0 {
		return 0, fmt.Errorf("%w: it answers no probes and let a call time out %s ago; it is asked again after %s",
			region.ErrUnavailable, ago.Round(time.Millisecond), reserve)
	}
	return limit, nil
}

// hastily is how long a call may take to a peer that answers no probes and let the last one
// time out so long ago; zero: there is to be none.
func hastily(ago, whole time.Duration) time.Duration {
	if ago < reserve {
		return 0
	}
	return min(hasty, whole)
}

// end notes how a call ended.
func (r *reach) end(peer region.PeerName, timedOut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !timedOut {
		delete(r.vain, peer)
		return
	}
	if r.vain == nil {
		r.vain = map[region.PeerName]time.Time{}
	}
	r.vain[peer] = time.Now()
}
