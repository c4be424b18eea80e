// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// sweepers bounds how many objects are swept at once.
const sweepers = 16

// Sweep passes over all peers once and does what anybody does who meets a
// leftover: what is dead goes, missing guards and replicas come, committed
// removals end. A reservation that is alive is watched for one lease and taken
// down if it shows no sign of life; a removal that waits for somebody's finalizer
// is left to the next pass. Sweep returns how many objects it worked on. It
// blocks, writes nothing where all is as it should be, and may run in any number
// of processes. The error joins what could not be read or mended.
func (c *Coordinator) Sweep(ctx context.Context) (swept int, err error) {
	return c.sweep(ctx, everybodys)
}

func everybodys(Kind, types.NamespacedName) bool { return true }

// sweep is Sweep of those objects that are ours.
func (c *Coordinator) sweep(ctx context.Context, ours func(Kind, types.NamespacedName) bool) (swept int, err error) {
	peers, err := c.peers(ctx)
	if err != nil {
		return 0, err
	}
	var errs []error
	unread := map[string]error{}
	lacking := false
	for _, kind := range c.opts.Kinds {
		s := c.look(ctx, kind, peers)
		unreadAll(unread, s.unread)
		lacking = lacking || len(s.unread) == 0 && lacksRing(s.sets)
		n, err := c.mendAll(ctx, kind, peers, s.examine(), ours, c.look)
		swept += n
		errs = append(errs, err)
	}
	for _, p := range peers {
		errs = append(errs, unread[p])
	}
	if lacking {
		errs = append(errs, c.ensureRing(ctx, peers))
	}
	return swept, errors.Join(errs...)
}

// SweepObject is Sweep of the object of that kind and name alone: what a deletion of
// it requests is judged, committed or recorded as held, and what is missing of it
// comes back. It blocks, and writes nothing where all is as it should be. The error
// joins what could not be read or mended.
func (c *Coordinator) SweepObject(ctx context.Context, gk schema.GroupKind, key types.NamespacedName) error {
	kind, err := c.kindFor(gk)
	if err == nil {
		err = kind.check(key)
	}
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	peers, err := c.peers(ctx)
	if err != nil {
		return err
	}
	s := c.lookAt(ctx, kind, key, peers)
	var errs []error
	for _, err := range s.unread {
		errs = append(errs, err)
	}
	_, err = c.mend(ctx, kind, s.examine())
	return errors.Join(append(errs, err)...)
}

// mendAll mends what findings name, and then what the end of a reservation has
// laid bare: as long as it is pending, the secondaries that name it are too.
func (c *Coordinator) mendAll(ctx context.Context, kind Kind, peers []string, findings []finding, ours func(Kind, types.NamespacedName) bool, look lookout) (int, error) {
	findings = slices.DeleteFunc(findings, func(f finding) bool { return !ours(kind, f.Key) })
	n, err := c.mend(ctx, kind, findings)
	pending := func(f finding) bool { return f.mend.obj != nil && f.mend.view.Claim.Primary && f.mend.view.Pending() }
	if !slices.ContainsFunc(findings, pending) {
		return n, err
	}
	bare := slices.DeleteFunc(look(ctx, kind, peers).examine(), func(f finding) bool { return pending(f) || !ours(kind, f.Key) })
	more, also := c.mend(ctx, kind, bare)
	return n + more, errors.Join(err, also)
}

// errWatched ends the look at a reservation that is alive. It says nothing of the peer that was being asked.
var errWatched = errors.New("it has been watched for long enough")

// forLease bounds the look at a reservation: one that is alive may take its time.
func (c *Coordinator) forLease(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, 2*c.opts.LeaseTimeout+c.opts.CallTimeout, errWatched)
}

// mend sweeps the objects that findings name, each once.
func (c *Coordinator) mend(ctx context.Context, kind Kind, findings []finding) (int, error) {
	type place struct {
		peer string
		uid  string
	}
	var (
		seen = map[place]bool{}
		errs = make([]error, len(findings))
		g    errgroup.Group
		pass = newCensus(c, kind)
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
				ctx, cancel = c.forLease(ctx)
				defer cancel()
			}
			r, err := c.sweeper(ctx, kind, region.PeerName(f.mendAt), f.mend.obj, f.mend.view, true)
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

// unmended joins the failures in the peers that a sweep could not bring along.
func (r *runner) unmended() error {
	var errs []error
	for _, peer := range r.machine.Result.Pending {
		errs = append(errs, r.failure(region.PeerName(peer)))
	}
	return errors.Join(errs...)
}

// sweepOne sweeps one object that was met in peer.
func (c *Coordinator) sweepOne(ctx context.Context, kind Kind, peer region.PeerName, obj *unstructured.Unstructured, view protocol.Object, watch bool) (protocol.Result, error) {
	r, err := c.sweeper(ctx, kind, peer, obj, view, watch)
	if err != nil {
		return protocol.Result{}, err
	}
	return r.run(ctx)
}

// sweeper makes what sweeps one object that was met in peer. With watch it stays
// until a reservation's lease has run out or its operation has ended.
func (c *Coordinator) sweeper(ctx context.Context, kind Kind, peer region.PeerName, obj *unstructured.Unstructured, view protocol.Object, watch bool) (*runner, error) {
	peers, err := c.peers(ctx)
	if err != nil {
		return nil, err
	}
	op := protocol.Operation{
		ID:          view.Claim.Operation,
		Action:      protocol.Sweep,
		Mode:        protocol.Mode(kind.Mode),
		Coordinator: c.opts.Identity,
		Peers:       peers,
		Target:      string(peer),
		Met:         view,
		Inert:       kind.Inert != nil,
		Holds:       len(kind.Holds) > 0,
		Limit:       c.opts.RemovalCap.limit(),
		Lease:       lease,
		Watch:       watch,
	}
	r := c.runner(kind, objectKey(obj), protocol.New(op), journal{Operation: op})
	if view.UID != "" && obj.GetUID() != "" {
		if _, err := r.remember(obj); err != nil {
			return nil, err
		}
	}
	return r, nil
}
