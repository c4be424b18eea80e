// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// reconcile brings the Syncer or the installation of one SyncTarget up to date. ctx is the context of Start, since
// Syncers outlive the reconcile that starts them.
func (c *Controller) reconcile(ctx context.Context, name string) (time.Duration, error) {
	if c.targets.Err() != nil {
		return 0, nil
	}
	obj, ok := c.targets.Get(types.NamespacedName{Name: name})
	if !ok {
		c.stop(name)
		c.forget(name)
		return 0, nil
	}
	target := &v1alpha1.SyncTarget{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, target); err != nil {
		return 0, fmt.Errorf("SyncTarget %s: %w", name, err)
	}
	mode := c.opts.mode(target)
	if e := c.get(name); e != nil && (e.uid != target.UID || e.mode != mode) {
		c.stop(name)
	}
	if target.DeletionTimestamp != nil {
		return c.release(ctx, target)
	}
	all, again, err := c.serve(ctx, target, mode)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defined, ok := c.types[name]
	c.mu.Unlock()
	if ok {
		all = append(all, defined)
	}
	return again, c.report(ctx, target, all...)
}

// forget drops the state of a SyncTarget that is gone.
func (c *Controller) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pulses, name)
	delete(c.types, name)
}

// serve starts, updates or ends the Syncer or the installation of a SyncTarget. It returns the conditions to write,
// and the requeue delay.
func (c *Controller) serve(ctx context.Context, target *v1alpha1.SyncTarget, mode Mode) ([]condition, time.Duration, error) {
	var kubeconfig []byte
	var err error
	if mode != None {
		kubeconfig, err = c.kubeconfig(ctx, target)
	}
	switch {
	case err == nil && kubeconfig == nil:
		c.stop(target.Name)
		all, again := c.elsewhere(target, mode)
		return all, again, nil
	case apierrors.IsNotFound(err) || errors.Is(err, errNoKubeconfig):
		return c.refuse(ctx, target, err), c.opts.Recheck, nil
	case err != nil:
		return nil, 0, err
	}
	if _, err := region.ParseKubeconfig(kubeconfig, c.opts.Trust); err != nil {
		return c.refuse(ctx, target, err), c.opts.Recheck, nil
	}
	if err := c.addFinalizer(ctx, target); err != nil {
		return nil, 0, err
	}
	e, err := c.engage(ctx, target, mode, kubeconfig)
	switch {
	case errors.Is(err, errUnusable):
		return c.refuse(ctx, target, err), c.opts.Recheck, nil
	case err != nil:
		return nil, 0, err
	case mode == Push:
		return nil, c.opts.Recheck, nil
	}
	state, err := c.install(ctx, target, e)
	if err != nil {
		return nil, 0, err
	}
	all, again := c.elsewhere(target, mode)
	return append(all, state), loop.Sooner(again, c.opts.Recheck), nil
}
