// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// uninstallFrom connects to the cluster of a SyncTarget, and uninstalls its syncer there.
func (c *Controller) uninstallFrom(ctx context.Context, target *v1alpha1.SyncTarget) (string, error) {
	kubeconfig, err := c.kubeconfig(ctx, target)
	if err != nil {
		return "", err
	}
	if kubeconfig == nil {
		return "", nil // without a kubeconfig nothing was installed
	}
	e, err := c.engage(ctx, target, Pull, kubeconfig)
	if err != nil {
		return "", err
	}
	return c.uninstall(ctx, target, e)
}

// uninstall deletes the installed objects, one step per call. It returns the object that it waits for; "" if nothing
// of the installation is left.
func (c *Controller) uninstall(ctx context.Context, target *v1alpha1.SyncTarget, e *engaged) (left string, err error) {
	in, err := c.ownInstall(ctx, target)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, synctarget.RequestTimeout)
	defer cancel()
	namespace, err := e.getOwn(ctx, namespaces, in.name(), in.owner())
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, errForeign):
		namespace = nil
	case err != nil:
		return "", err
	}
	inside := e.conn.Dynamic()
	if namespace != nil && namespace.DeletionTimestamp == nil {
		// The Pods go first, so that no syncer runs while its rights are removed.
		foreground := metav1.DeletePropagationForeground
		err := inside.Resource(deploymentResource).Namespace(in.name()).Delete(ctx, program, metav1.DeleteOptions{PropagationPolicy: &foreground})
		if err == nil {
			return "the Deployment", nil
		}
		if !apierrors.IsNotFound(err) {
			return "", err
		}
	}
	for _, gvr := range []schema.GroupVersionResource{clusterRoleBindings, clusterRoles} {
		if err := e.remove(ctx, gvr, in); err != nil {
			return "", err
		}
	}
	if namespace == nil {
		return "", nil
	}
	if namespace.DeletionTimestamp == nil {
		if err := inside.Resource(secrets).Namespace(in.name()).Delete(ctx, upstreamSecret, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return "", err
		}
		if err := e.remove(ctx, namespaces, in); err != nil {
			return "", err
		}
	}
	return "the Namespace", nil
}

// remove deletes a cluster-scoped object if it is ours.
func (e *engaged) remove(ctx context.Context, gvr schema.GroupVersionResource, in Install) error {
	there, err := e.getOwn(ctx, gvr, in.name(), in.owner())
	if apierrors.IsNotFound(err) || errors.Is(err, errForeign) {
		return nil
	}
	if err != nil {
		return err
	}
	err = e.conn.Dynamic().Resource(gvr).Delete(ctx, there.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &there.UID}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
