// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-dev/atoll/internal/logging"
)

// Engage runs fn once for each peer for as long as the peer is in d: fn's context ends when it leaves, not when its
// credentials rotate. It ends too when the Source withholds the peer's credentials. An fn that returns early is started again after a back-off of 1 second, doubling up to 1 minute; so
// is a peer without usable credentials tried again. Engage returns nil when ctx has ended and every fn has returned.
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
			// A peer that left and came back between two snapshots has another connection, one whose credentials are
			// withheld has none, and one that had none and has it now need not wait any longer.
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

// engagement is one peer's fn.
type engagement struct {
	conn   atomic.Pointer[Conn] // nil if there was none yet
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

// connected returns nil if there is no connection.
func connected(d Directory, name PeerName) *Conn {
	conn, err := d.Conn(name)
	if err != nil {
		return nil
	}
	return conn
}

func (e *engagement) run(ctx context.Context, d Directory, name PeerName, fn func(context.Context, *Conn) error) {
	log := logging.From(ctx).WithValues("peer", name)
	wait := engageBackoff
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
			wait = engageBackoff
		}
		log.Info("Engagement ended early and starts again", "after", wait.String(), "error", err)
		timer := time.NewTimer(jitter(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		wait = min(2*wait, engageMaxBackoff)
	}
}
