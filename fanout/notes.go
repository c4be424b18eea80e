// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// pace limits how often a task runs: it stores the time of the last run.
type pace struct {
	mu   sync.Mutex
	last time.Time
}

// due reports whether the last run is at least the given duration ago. If so, it stores the
// present time as that of the last run.
func (p *pace) due(every time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.last) < every {
		return false
	}
	p.last = now
	return true
}

// takeNotes writes into each member's PeerSet the epochs of the other members' PeerSets. An epoch
// rises with each write of a PeerSet. A member whose epoch is below one that another member has
// noted was restored from an older state.
func (w *sweeper) takeNotes(ctx context.Context) error {
	if w.opts.NoteEvery < 0 || !w.noting.due(w.opts.NoteEvery) {
		return nil
	}
	peers, err := w.clusters.peers(ctx)
	if err != nil {
		return err
	}
	sets := w.clusters.readSets(ctx, peers)
	var (
		notes = protocol.Notes(sets)
		errs  = make([]error, len(peers))
		wg    sync.WaitGroup
	)
	for i, p := range peers {
		if len(notes[p]) > 0 {
			wg.Go(func() {
				errs[i] = explain(region.PeerName(p), "note the epochs of the other PeerSets", w.writeNotes(ctx, region.PeerName(p), sets[p].RV, notes[p]))
			})
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// writeNotes writes notes into the PeerSet of a peer, unless that PeerSet got notes less than half
// of NoteEvery ago, cannot store them, or has changed since it was read at resourceVersion rv. The
// next call tries again.
func (w *sweeper) writeNotes(ctx context.Context, peer region.PeerName, rv string, notes []protocol.Note) error {
	conn, err := w.clusters.trusted(ctx, peer)
	if err != nil || w.clusters.identities.ringless(conn) {
		return err
	}
	_, err = w.clusters.editSet(ctx, conn, rv, func(spec map[string]any) bool {
		last, _ := spec["notedAt"].(string)
		if at, err := time.Parse(time.RFC3339, last); err == nil && time.Since(at) < w.opts.NoteEvery/2 && time.Since(at) >= 0 {
			return false
		}
		list := make([]any, len(notes))
		for i, n := range notes {
			list[i] = map[string]any{"peer": n.Peer, "uid": n.UID, "epoch": n.Epoch}
		}
		spec["notes"], spec["notedAt"] = list, time.Now().UTC().Format(time.RFC3339)
		return true
	})
	return err
}
