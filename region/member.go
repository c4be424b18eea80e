// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"time"

	"github.com/atoll-dev/atoll/internal/logging"
)

// member is one peer of a Ring: its connection and the goroutine that probes and rotates it.
type member struct {
	ring   *Ring
	conn   *Conn
	err    error              // why conn is nil
	offers chan Credentials   // the newest credentials of the Source
	leave  context.CancelFunc // ends run

	released bool // the peer has left; guarded by ring.mu
}

func (r *Ring) newMember(p *Peer) *member {
	m := &member{ring: r, offers: make(chan Credentials, 1)}
	opts := ConnOptions{Drain: r.opts.Drain, Observer: r.opts.Observer}
	if refresher, ok := r.src.(Refresher); ok {
		opts.Refresh = refresher.Refresh
	}
	m.conn, m.err = NewConn(*p, opts)
	return m
}

// offer hands creds to run. It replaces an earlier offer that run has not received yet. Only one goroutine calls it.
func (m *member) offer(creds Credentials) {
	select {
	case <-m.offers:
	default:
	}
	m.offers <- creds
}

// run probes until ctx ends, and rotates to offered credentials. Probes use the Conn's own transports, as requests do.
// A running probe delays no rotation: the probe may itself wait for new credentials, or for an unreachable peer.
func (m *member) run(ctx context.Context) {
	log := logging.From(ctx).WithValues("peer", m.conn.Peer())
	opts := m.ring.opts.Probe
	due := newTimer(0)
	rotate := newTimer(-1)
	defer due.Stop()
	defer rotate.Stop()
	var pending Credentials
	var failedRotations int
	p := prober{member: m, opts: opts, failing: true}
	var probe probing
	defer func() { probe.end() }()
	for {
		select {
		case <-ctx.Done():
			return
		case creds := <-m.offers:
			if creds.err != nil {
				// The Source lists the peer but cannot read its credentials: keep the last good ones.
				log.Error(creds.err, "New credentials cannot be used; keeping the present ones")
				m.conn.rotation.Store(&creds.err)
				continue
			}
			pending, failedRotations = creds, 0
			rotate.Reset(0)
		case <-rotate.C:
			if err := m.rotate(ctx, pending, opts.Timeout); err != nil && ctx.Err() == nil {
				failedRotations++
				m.conn.rotation.Store(&err)
				log.Error(err, "Credentials were not replaced; keeping the present ones")
				rotate.Reset(opts.backoff(failedRotations))
				continue
			}
			m.conn.rotation.Store(nil)
			// Probe at once: the previous failures may have come from the old credentials.
			probe.end()
			due.Reset(0)
		case <-due.C:
			probe.begin(ctx, func(ctx context.Context) time.Duration { return p.probe(ctx, log) })
		case wait := <-probe.next:
			probe.end()
			due.Reset(wait)
		}
	}
}

func (m *member) rotate(ctx context.Context, creds Credentials, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return m.conn.Rotate(ctx, creds)
}

// newTimer returns a timer that fires after d, or never if d is negative.
func newTimer(d time.Duration) *time.Timer {
	if d >= 0 {
		return time.NewTimer(d)
	}
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
