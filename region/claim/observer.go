// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// Observer receives the events of an Arbiter. A nil Observer and any nil field are valid. Hooks are
// called synchronously without a lock held, possibly from many goroutines, and must return quickly.
type Observer struct {
	// Decided is called after this arbiter recorded the holder of a region.
	Decided func(ctx context.Context, e DecideEvent)
	// Reported is called after the status of a RegionClaim was written.
	Reported func(ctx context.Context, e ReportEvent)
	// Gated is called after the gate of a ServiceCluster was written.
	Gated func(ctx context.Context, e GateEvent)
	// Contradicted is called once for a RegionClaim whose status another client keeps replacing
	// without a new decision: the Arbiters of another central plane with the same peer, or any
	// other controller.
	Contradicted func(ctx context.Context, e ContradictEvent)
}

// DecideEvent is a decision.
type DecideEvent struct {
	Region region.Key
	Before region.PeerName // the previous holder; empty: none
	Holder region.PeerName // the new holder; empty: none
	Since  time.Time       // when the holder got the region, by an arbiter's clock
}

// ReportEvent is a written status of a RegionClaim.
type ReportEvent struct {
	Region region.Key
	Peer   region.PeerName           // the peer of the claim
	UID    types.UID                 // of the claim
	Before v1alpha1.RegionClaimPhase // the phase that an arbiter wrote before; other writers do not count
	Phase  v1alpha1.RegionClaimPhase
	// Reason and Message are from the condition Bound.
	Reason, Message string
}

// GateEvent is a written gate of a ServiceCluster.
type GateEvent struct {
	Region region.Key
	Peer   region.PeerName // the peer of the ServiceCluster
	Bound  bool            // whether its RegionClaim is Bound
}

// ContradictEvent is a RegionClaim whose status another client keeps replacing.
type ContradictEvent struct {
	Region region.Key
	Peer   region.PeerName // the peer of the claim
	UID    types.UID       // of the claim
	Holder region.PeerName // the holder of the region
	Theirs region.PeerName // the holder according to the other client
	By     string          // the other client's field manager: FieldManager if it is an Arbiter, empty if it is not known
}

func (o *Observer) decided(ctx context.Context, e DecideEvent) {
	if o != nil && o.Decided != nil {
		o.Decided(ctx, e)
	}
}

func (o *Observer) reported(ctx context.Context, e ReportEvent) {
	if o != nil && o.Reported != nil {
		o.Reported(ctx, e)
	}
}

func (o *Observer) gated(ctx context.Context, e GateEvent) {
	if o != nil && o.Gated != nil {
		o.Gated(ctx, e)
	}
}

func (o *Observer) contradicted(ctx context.Context, e ContradictEvent) {
	if o != nil && o.Contradicted != nil {
		o.Contradicted(ctx, e)
	}
}
