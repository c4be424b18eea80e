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
	err    error              // why there is no conn
	offers chan Credentials   // the newest that the Source has
	leave  context.CancelFunc // ends run

	released bool // it has left; guarded by ring.mu
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

// offer replaces what was offered before and not taken yet. It is called by one goroutine only.
func (m *member) offer(creds Credentials) {
	select {
	case <-m.offers:
	default:
	}
	m.offers <- creds
}

// run probes until ctx ends, and rotates to what is offered. Both use the Conn's own transports, so that what is found
// healthy is what is used. A probe never keeps new credentials waiting: it may itself wait for them, or for a peer that
// answers no more.
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
				// The Source knows the peer but cannot read its credentials: the last good ones stay.
				log.Error(creds.err, "New credentials cannot be used; the present ones stay")
				m.conn.rotation.Store(&creds.err)
				continue
			}
			pending, failedRotations = creds, 0
			rotate.Reset(0)
		case <-rotate.C:
			if err := m.rotate(ctx, pending, opts.Timeout); err != nil && ctx.Err() == nil {
				failedRotations++
				m.conn.rotation.Store(&err)
				log.Error(err, "Credentials were not replaced; the present ones stay")
				rotate.Reset(opts.backoff(failedRotations))
				continue
			}
			m.conn.rotation.Store(nil)
			// What was wrong may have been the credentials.
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

// newTimer is a timer that fires after d, or not at all if d is negative.
func newTimer(d time.Duration) *time.Timer {
	if d >= 0 {
		return time.NewTimer(d)
	}
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
