// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// executor runs state machines (protocol.Machine): one for each operation, and one for each object that a sweep judges.
// A sweep lists the objects in all peers, and repairs the faults that it finds.
type executor struct {
	opts     *Options
	clusters *clusters
	entries  *entries
	kinds    *kinds

	tails  tails
	guards guardChecks
}

func (x *executor) runner(kind Kind, key types.NamespacedName, machine *protocol.Machine, j journal) *runner {
	r := &runner{
		executor: x,
		kind:     kind,
		key:      key,
		machine:  machine,
		entry:    newLogEntry(x.entries),
		journal:  j,
		census:   newCensus(x, kind),
		memory:   newMemory(kind),
	}
	if token, err := j.Content.token(); err == nil {
		r.memory.contents[token] = j.Content
		r.requestToken = token
	}
	return r
}

// quantum returns the length of one pause of a machine: LeaseTimeout has 60 quanta.
func (x *executor) quantum() time.Duration { return x.opts.LeaseTimeout / lease }

// sweepRunner returns a runner that sweeps one object in peer. If watch is set and the object is a
// reservation, the runner waits until the reservation's lease has run out or the reservation's
// operation has ended.
func (x *executor) sweepRunner(ctx context.Context, kind Kind, peer region.PeerName, obj *unstructured.Unstructured, view protocol.Object, watch bool) (*runner, error) {
	peers, err := x.clusters.peers(ctx)
	if err != nil {
		return nil, err
	}
	op := protocol.Operation{
		ID:          view.Claim.Operation,
		Action:      protocol.Sweep,
		Mode:        protocol.Mode(kind.Mode),
		Coordinator: x.opts.Identity,
		Peers:       peers,
		Target:      string(peer),
		Met:         view,
		Inert:       kind.Inert != nil,
		Holds:       len(kind.Holds) > 0,
		Limit:       x.opts.RemovalCap.limit(),
		Lease:       lease,
		Watch:       watch,
	}
	r := x.runner(kind, objectKey(obj), protocol.New(op), journal{Operation: op})
	if view.UID != "" && obj.GetUID() != "" {
		if _, err := r.memory.remember(obj); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// sweepOne sweeps one object in peer.
func (x *executor) sweepOne(ctx context.Context, kind Kind, peer region.PeerName, obj *unstructured.Unstructured, view protocol.Object, watch bool) (protocol.Result, error) {
	r, err := x.sweepRunner(ctx, kind, peer, obj, view, watch)
	if err != nil {
		return protocol.Result{}, err
	}
	return r.run(ctx)
}

// outlast waits for the older rival to which a request gave way, while the request holds no
// reservation. It waits until the rival is no longer pending, or deletes the rival's reservation
// after a lease without a sign of life.
func (x *executor) outlast(ctx context.Context, kind Kind, key types.NamespacedName, result protocol.Result) {
	obj := kind.object(key, nil)
	// The result does not matter: the next attempt reads the name itself.
	_, _ = x.sweepOne(ctx, kind, region.PeerName(result.HolderAt), obj, result.Holder, true)
}
