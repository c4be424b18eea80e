// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
)

// Observer receives events. nil, and any nil field, is valid. Hooks are called synchronously without a lock held,
// possibly from many goroutines, and must return quickly. Events are structs so that fields can be added.
type Observer struct {
	// Ready is called after the condition Ready of a Peer was written with another status or reason.
	Ready func(ctx context.Context, e ReadyEvent)
	// Master is called when the loops of a Master start and after they have ended.
	Master func(ctx context.Context, e MasterEvent)
}

// ReadyEvent is a change of the condition Ready of a Peer.
type ReadyEvent struct {
	Peer            region.PeerName
	UID             types.UID // of the Peer object
	Before, Status  metav1.ConditionStatus
	Reason, Message string
}

// MasterEvent is the start or the end of the loops of a Master.
type MasterEvent struct {
	Running bool
	Err     error // why the loops ended by themselves; nil otherwise
}

func (o *Observer) changed(ctx context.Context, e ReadyEvent) {
	if o != nil && o.Ready != nil {
		o.Ready(ctx, e)
	}
}

func (o *Observer) master(ctx context.Context, e MasterEvent) {
	if o != nil && o.Master != nil {
		o.Master(ctx, e)
	}
}
