// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// sweepers bounds the number of concurrent sweeps of objects.
const sweepers = 16

// sweeper deletes the objects of dead (uncommitted and abandoned) operations, restores missing
// secondaries, and adopts objects.
type sweeper struct {
	opts      *Options
	clusters  *clusters
	surveyor  *surveyor
	executor  *executor
	submitter *submitter

	noting pace
}

// Sweep sweeps all peers once: it deletes dead objects, restores missing guards and replicas,
// commits edits of homes, finishes committed removals and moves, and judges requested removals. It
// watches a reservation for one lease and deletes the reservation if it shows no sign of life. A
// removal that waits for finalizers of other controllers is left to the next sweep. Sweep returns
// the number of objects that it worked on. It blocks, writes nothing if nothing needs repair, and
// may run in any number of processes. The error joins the failures of reads and repairs.
func (c *Coordinator) Sweep(ctx context.Context) (swept int, err error) {
	return c.sweeper.sweep(ctx, allObjects)
}

func allObjects(Kind, types.NamespacedName) bool { return true }

// sweep is Sweep for only the objects for which the function ours returns true.
func (w *sweeper) sweep(ctx context.Context, ours func(Kind, types.NamespacedName) bool) (swept int, err error) {
	peers, err := w.clusters.peers(ctx)
	if err != nil {
		return 0, err
	}
	var errs []error
	unread := map[string]error{}
	lacking := false
	for _, kind := range w.opts.Kinds {
		s := w.surveyor.survey(ctx, kind, peers)
		unreadAll(unread, s.unread)
		lacking = lacking || len(s.unread) == 0 && lacksRing(s.sets)
		n, err := w.mendAll(ctx, kind, peers, s.examine(), ours, w.surveyor.survey)
		swept += n
		errs = append(errs, err)
	}
	for _, p := range peers {
		errs = append(errs, unread[p])
	}
	if lacking {
		errs = append(errs, w.clusters.ensureRing(ctx, peers))
	}
	return swept, errors.Join(errs...)
}

// SweepObject is Sweep of one object. It judges a requested removal, and commits it or records
// it as held; it restores missing guards and replicas. It blocks, and writes nothing if nothing
// needs repair. The error joins the failures of reads and repairs.
func (c *Coordinator) SweepObject(ctx context.Context, gk schema.GroupKind, key types.NamespacedName) error {
	kind, err := c.kinds.find(gk)
	if err == nil {
		err = kind.check(key)
	}
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	peers, err := c.clusters.peers(ctx)
	if err != nil {
		return err
	}
	s := c.surveyor.lookAt(ctx, kind, key, peers)
	var errs []error
	for _, err := range s.unread {
		errs = append(errs, err)
	}
	_, err = c.sweeper.mend(ctx, kind, s.examine())
	return errors.Join(append(errs, err)...)
}

// mendAll repairs the given findings. If reservations are among them, it surveys the peers again
// and repairs the remaining secondaries: the secondaries of a reservation can be deleted only once
// the reservation is gone.
func (w *sweeper) mendAll(ctx context.Context, kind Kind, peers []string, findings []finding, ours func(Kind, types.NamespacedName) bool, look lookout) (int, error) {
	findings = slices.DeleteFunc(findings, func(f finding) bool { return !ours(kind, f.Key) })
	n, err := w.mend(ctx, kind, findings)
	pending := func(f finding) bool { return f.mend.obj != nil && f.mend.view.Claim.Primary && f.mend.view.Pending() }
	if !slices.ContainsFunc(findings, pending) {
		return n, err
	}
	bare := slices.DeleteFunc(look(ctx, kind, peers).examine(), func(f finding) bool { return pending(f) || !ours(kind, f.Key) })
	more, also := w.mend(ctx, kind, bare)
	return n + more, errors.Join(err, also)
}

// errWatched ends the watch of a reservation that shows signs of life. It does not count as a
// failure of the peer.
var errWatched = errors.New("it has been watched for long enough")

// forLease bounds the watch of a reservation, which has no end while the reservation is alive.
func (w *sweeper) forLease(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, 2*w.opts.LeaseTimeout+w.opts.CallTimeout, errWatched)
}

// mend sweeps the object of each finding. It sweeps an object with several findings only once.
func (w *sweeper) mend(ctx context.Context, kind Kind, findings []finding) (int, error) {
	type place struct {
		peer string
		uid  string
	}
	var (
		seen = map[place]bool{}
		errs = make([]error, len(findings))
		g    errgroup.Group
		pass = newCensus(w.executor, kind)
	)
	g.SetLimit(sweepers)
	for i, f := range findings {
		at := place{f.mendAt, f.mend.view.UID}
		if f.mend.obj == nil || seen[at] {
			continue
		}
		seen[at] = true
		g.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] != nil {
				return nil
			}
			ctx := ctx
			if f.reservation() {
				var cancel context.CancelFunc
				ctx, cancel = w.forLease(ctx)
				defer cancel()
			}
			r, err := w.executor.sweepRunner(ctx, kind, region.PeerName(f.mendAt), f.mend.obj, f.mend.view, true)
			if err == nil {
				r.census = pass
				_, err = r.run(ctx)
				err = errors.Join(err, r.unmended())
			}
			errs[i] = err
			return nil
		})
	}
	_ = g.Wait()
	return len(seen), errors.Join(errs...)
}

// unmended joins the failures of the peers in which a sweep could not complete its work.
func (r *runner) unmended() error {
	var errs []error
	for _, peer := range r.machine.Result.Pending {
		errs = append(errs, r.failure(region.PeerName(peer)))
	}
	return errors.Join(errs...)
}

// owns reports whether this coordinator's Shard has the object.
func (w *sweeper) owns(kind Kind, key types.NamespacedName) bool {
	return loop.OwnsKey(w.opts.Shard, kind.Kind+"/"+keyString(key))
}
