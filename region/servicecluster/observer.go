// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// Observer receives the events of a Controller. A nil Observer and any nil field are valid. Hooks are called
// synchronously without a lock held, possibly from many goroutines, and must return quickly.
type Observer struct {
	// Probed is called after each probe of a cluster.
	Probed func(ctx context.Context, e ProbeEvent)
	// Reported is called after the status of a ServiceCluster was written.
	Reported func(ctx context.Context, e ReportEvent)
}

// ProbeEvent is a probe.
type ProbeEvent struct {
	Region  region.Key
	Peer    region.PeerName // the peer of the ServiceCluster
	Elapsed time.Duration
	Err     error // nil: the cluster answered
}

// ReportEvent is a written status.
type ReportEvent struct {
	Region region.Key
	Peer   region.PeerName // the peer of the ServiceCluster
	UID    types.UID       // of the ServiceCluster
	Phase  v1alpha1.ServiceClusterPhase
	// Before is the status of the condition Ready before the write, empty if there was none.
	Before metav1.ConditionStatus
	// Ready, Reason and Message are those of the condition Ready.
	Ready           metav1.ConditionStatus
	Reason, Message string
}

func (o *Observer) probed(ctx context.Context, e ProbeEvent) {
	if o != nil && o.Probed != nil {
		o.Probed(ctx, e)
	}
}

func (o *Observer) reported(ctx context.Context, e ReportEvent) {
	if o != nil && o.Reported != nil {
		o.Reported(ctx, e)
	}
}
