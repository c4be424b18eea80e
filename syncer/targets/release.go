// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// release ends the Syncer of a SyncTarget that is being deleted. Then it removes the finalizer of the target from the
// upstream objects, and our finalizer from the SyncTarget.
func (c *Controller) release(ctx context.Context, target *v1alpha1.SyncTarget) (time.Duration, error) {
	if !hasFinalizer(target) {
		c.stop(target.Name)
		return 0, nil
	}
	if c.opts.mode(target) != Push {
		if done, again, err := c.awaitEnd(ctx, target); err != nil || !done {
			return again, err
		}
	}
	c.stop(target.Name)
	opts := c.options(target)
	if opts.Types == nil && c.opts.mode(target) == Pull {
		opts.Types = c.installedTypes(ctx, target)
	}
	if err := syncer.Detach(ctx, c.up, opts); err != nil {
		return 0, err
	}
	return 0, c.removeFinalizer(ctx, target)
}

// installedTypes selects the types that the installed Syncer syncs, whose objects may have its finalizer. It selects
// all types if Install fails.
func (c *Controller) installedTypes(ctx context.Context, target *v1alpha1.SyncTarget) syncer.TypeFilter {
	in, err := c.opts.Install(ctx, target)
	if err != nil {
		return func(schema.GroupResource) bool { return true }
	}
	if in.Types == nil {
		in.Types = syncer.WorkloadTypes()
	}
	return func(gr schema.GroupResource) bool { return slices.Contains(in.Types, gr) }
}

// awaitEnd uninstalls the syncer of a SyncTarget that is being deleted, and waits until it has ended. done is true when
// no syncer works for the SyncTarget any longer.
func (c *Controller) awaitEnd(ctx context.Context, target *v1alpha1.SyncTarget) (done bool, again time.Duration, err error) {
	abandoned := target.Annotations[v1alpha1.AbandonAnnotation] == "true"
	if !abandoned && c.opts.mode(target) == Pull {
		left, err := c.uninstallFrom(ctx, target)
		if err != nil {
			why := fmt.Errorf("%w; to release the SyncTarget although the syncer stays there, annotate it: %s=true", err, v1alpha1.AbandonAnnotation)
			return false, c.opts.Recheck, c.report(ctx, target, notInstalled(reasonOf(err), why))
		}
		if left != "" {
			return false, min(synctarget.ShortRetry, c.opts.Recheck), c.report(ctx, target, notInstalled(v1alpha1.SyncTargetReasonUninstalling, errors.New(left+" is not gone yet")))
		}
	}
	if target.Status.LastSyncerHeartbeatTime == nil || synctarget.HasEnded(target) {
		return true, 0, nil
	}
	wait := c.untilSilent(target)
	return wait == 0, wait, nil
}
