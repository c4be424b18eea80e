// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// Observer has functions that a Controller calls on events. Any of them may be nil. They must not block
// and must be safe for concurrent use.
type Observer struct {
	// Carried is called after the Controller wrote or removed Deployments of a ClusterDaemonSet, and after
	// an error other than a Conflict while it worked on one.
	Carried func(context.Context, CarriedEvent)
}

// CarriedEvent is the outcome of one reconcile of a ClusterDaemonSet.
type CarriedEvent struct {
	ClusterDaemonSet types.NamespacedName
	// Written and Removed are the names of the Deployments that were written and deleted.
	Written, Removed []string
	Err              error
}

func (o *Observer) carried(ctx context.Context, e CarriedEvent) {
	if o != nil && o.Carried != nil && (e.Err != nil || len(e.Written)+len(e.Removed) > 0) {
		o.Carried(ctx, e)
	}
}
