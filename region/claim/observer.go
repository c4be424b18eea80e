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

// Observer receives what an Arbiter does. A nil Observer and any nil field are
// fine. Hooks are called synchronously without a lock held, possibly from many
// goroutines, and must return quickly.
type Observer struct {
	// Decided is called after this arbiter wrote who holds a region.
	Decided func(ctx context.Context, e DecideEvent)
	// Reported is called after the status of a RegionClaim was written.
	Reported func(ctx context.Context, e ReportEvent)
	// Gated is called after the gate of a ServiceCluster was written.
	Gated func(ctx context.Context, e GateEvent)
	// Contradicted is called once for a RegionClaim whose status somebody else
	// replaces again and again, though nothing new was decided: the Arbiters of
	// another central plane, in which its peer is registered too, or any other
	// controller.
	Contradicted func(ctx context.Context, e ContradictEvent)
}

// DecideEvent is a decision.
type DecideEvent struct {
	Region region.Key
	Before region.PeerName // who held it; empty: nobody
	Holder region.PeerName // who holds it now; empty: nobody
	Since  time.Time       // since when, by the clock of an arbiter
}

// ReportEvent is a status of a RegionClaim.
type ReportEvent struct {
	Region region.Key
	Peer   region.PeerName           // in which the claim stands
	UID    types.UID                 // of the claim
	Before v1alpha1.RegionClaimPhase // what arbiters had told it, whatever others have written since
	Phase  v1alpha1.RegionClaimPhase
	// Reason and Message are those of the condition Bound.
	Reason, Message string
}

// GateEvent is a ServiceCluster that was told about its region.
type GateEvent struct {
	Region region.Key
	Peer   region.PeerName // in which the ServiceCluster stands
	Bound  bool            // its RegionClaim is
}

// ContradictEvent is a RegionClaim about which somebody else decides otherwise.
type ContradictEvent struct {
	Region region.Key
	Peer   region.PeerName // in which the claim stands
	UID    types.UID       // of the claim
	Holder region.PeerName // who holds the region
	Theirs region.PeerName // who holds it as the other says
	By     string          // the other's field manager: FieldManager if it is an Arbiter, empty if that cannot be told
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
