// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/internal/logging"
)

// Engage runs fn for each peer while the peer is in d, one call at a time per peer. fn's context ends when the peer
// leaves or the Source withholds its credentials, not when the credentials rotate. If fn returns early, or cannot be
// called because the peer has no usable credentials, Engage tries again after a backoff of 1 second, doubling up to 1
// minute. It returns nil when ctx has ended and every fn has returned.
func Engage(ctx context.Context, d Directory, fn func(context.Context, *Conn) error) error {
	switch {
	case d == nil:
		return errors.New("engage: the Directory is nil")
	case fn == nil:
		return errors.New("engage: the func is nil")
	}
	engaged := make(map[PeerName]*engagement)
	var wg sync.WaitGroup
	defer wg.Wait()
	for s := range d.Watch(ctx) {
		for name, e := range engaged {
			// Restart a peer whose connection changed: it left and joined again between two snapshots, its credentials
			// were withheld, or it has its first usable credentials. The restart also ends the backoff.
			if _, ok := s.Peer(name); !ok || e.conn.Load() != connected(d, name) {
				e.end()
			}
		}
		for p := range s.Peers() {
			before := engaged[p.Name]
			if before != nil && !before.ended {
				continue
			}
			peerCtx, cancel := context.WithCancel(ctx)
			e := &engagement{cancel: cancel, done: make(chan struct{})}
			e.conn.Store(connected(d, p.Name))
			engaged[p.Name] = e
			wg.Go(func() {
				defer close(e.done)
				defer cancel()
				if before != nil {
					<-before.done
				}
				e.run(peerCtx, d, p.Name, fn)
			})
		}
		for name, e := range engaged {
			if _, ok := s.Peer(name); !ok && isClosed(e.done) {
				delete(engaged, name)
			}
		}
	}
	for _, e := range engaged {
		e.end()
	}
	return nil
}

// engagement is the goroutine that runs fn for one peer, again after each return, until it is canceled.
type engagement struct {
	conn   atomic.Pointer[Conn] // nil before the first connection
	cancel context.CancelFunc
	done   chan struct{}
	ended  bool
}

func (e *engagement) end() {
	e.ended = true
	e.cancel()
}

const (
	engageBackoff    = time.Second
	engageMaxBackoff = time.Minute
)

// connected returns the connection to the peer; nil if there is no connection.
func connected(d Directory, name PeerName) *Conn {
	conn, err := d.Conn(name)
	if err != nil {
		return nil
	}
	return conn
}

func (e *engagement) run(ctx context.Context, d Directory, name PeerName, fn func(context.Context, *Conn) error) {
	log := logging.From(ctx).WithValues("peer", name)
	fresh := backoff.Doubling(engageBackoff, engageMaxBackoff)
	delays := fresh
	for ctx.Err() == nil {
		began := time.Now()
		conn, err := d.Conn(name)
		if err == nil {
			e.conn.Store(conn)
			err = fn(ctx, conn)
		}
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > engageMaxBackoff {
			delays = fresh
		}
		wait := delays.Step()
		log.Info("Engagement ended early and starts again", "after", wait.String(), "error", err)
		timer := time.NewTimer(jitter(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}
