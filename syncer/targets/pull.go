// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// installManager is the field manager of installed objects.
const installManager = synctarget.SyncerManager + "-install"

var (
	deploymentResource  = appsv1.SchemeGroupVersion.WithResource("deployments")
	clusterRoles        = rbacv1.SchemeGroupVersion.WithResource("clusterroles")
	clusterRoleBindings = rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")
	namespaces          = corev1.SchemeGroupVersion.WithResource("namespaces")
	secrets             = corev1.SchemeGroupVersion.WithResource("secrets")
	serviceAccounts     = corev1.SchemeGroupVersion.WithResource("serviceaccounts")

	installed = map[string]schema.GroupVersionResource{
		"Namespace": namespaces, "ServiceAccount": serviceAccounts, "Secret": secrets, "Deployment": deploymentResource,
		"ClusterRole": clusterRoles, "ClusterRoleBinding": clusterRoleBindings,
	}
)

// identity returns the UID of the upstream's namespace kube-system. It reads the UID once and remembers it.
func (c *Controller) identity(ctx context.Context) (string, error) {
	c.mu.Lock()
	known := c.upstreamUID
	c.mu.Unlock()
	if known != "" {
		return string(known), nil
	}
	uid, err := synctarget.ClusterUID(ctx, c.up)
	if err != nil {
		return "", fmt.Errorf("upstream: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.upstreamUID = uid
	return string(uid), nil
}

// ownInstall returns an Install with the fields that name the installation of a SyncTarget.
func (c *Controller) ownInstall(ctx context.Context, target *v1alpha1.SyncTarget) (Install, error) {
	identity, err := c.identity(ctx)
	return Install{Target: target.Name, Upstream: identity}, err
}

// install applies the installation if the SyncTarget or the installed Deployment has changed, or if
// Options.Recheck has passed since the last complete apply. A heartbeat alone causes no apply. It returns the
// condition Installed.
func (c *Controller) install(ctx context.Context, target *v1alpha1.SyncTarget, e *engaged) (condition, error) {
	own, err := c.ownInstall(ctx, target)
	if err != nil {
		return condition{}, err
	}
	disturbed := e.disturbed.Swap(false)
	if !disturbed && e.generation == target.Generation && time.Since(e.placed) < c.opts.Recheck {
		return e.available(own), nil
	}
	e.placed = time.Time{}
	in, err := c.opts.Install(ctx, target)
	if err != nil {
		return notInstalled(v1alpha1.SyncTargetReasonRefused, err), nil
	}
	in.Target, in.Upstream, in.Heartbeat = own.Target, own.Upstream, c.opts.Heartbeat
	manifests, err := Manifests(in)
	if err != nil {
		return notInstalled(v1alpha1.SyncTargetReasonRefused, err), nil
	}
	for _, obj := range manifests {
		if err := e.apply(ctx, obj); err != nil {
			return notInstalled(reasonOf(err), err), nil
		}
	}
	e.placed, e.generation = time.Now(), target.Generation
	return e.available(own), nil
}

func notInstalled(reason v1alpha1.SyncTargetConditionReason, err error) condition {
	return condition{v1alpha1.SyncTargetConditionInstalled, metav1.ConditionFalse, reason, err.Error()}
}

func reasonOf(err error) v1alpha1.SyncTargetConditionReason {
	status := apierrors.APIStatus(nil)
	switch {
	case errors.Is(err, errForeign):
		return v1alpha1.SyncTargetReasonForeign
	case errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500:
		return v1alpha1.SyncTargetReasonRefused
	}
	return v1alpha1.SyncTargetReasonUnreachable
}

// apply applies one object. Every object in our own namespace is ours. Any other object must have our label, or must
// not exist yet.
func (e *engaged) apply(ctx context.Context, obj *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, synctarget.RequestTimeout)
	defer cancel()
	step := fmt.Sprintf("install %s %s", obj.GetKind(), obj.GetName())
	if obj.GetNamespace() == "" {
		if _, err := e.getOwn(ctx, installed[obj.GetKind()], obj.GetName(), obj.GetLabels()[InstallationLabel]); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	client := e.conn.Dynamic().Resource(installed[obj.GetKind()]).Namespace(obj.GetNamespace())
	_, err := client.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: installManager, Force: true})
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

// getOwn returns a cluster-scoped object, or errForeign if the InstallationLabel of the object is not owner.
func (e *engaged) getOwn(ctx context.Context, gvr schema.GroupVersionResource, name, owner string) (*metav1.PartialObjectMetadata, error) {
	there, err := e.conn.Metadata().Resource(gvr).Get(ctx, name, metav1.GetOptions{})
	if err == nil && there.Labels[InstallationLabel] != owner {
		err = errForeign
	}
	return there, err
}

var errForeign = errors.New("an object of this name exists and does not belong to this installation")

// available returns the condition Installed, from the state of the Deployment.
func (e *engaged) available(in Install) condition {
	obj, ok := e.deployments.Get(types.NamespacedName{Namespace: in.name(), Name: program})
	d := &appsv1.Deployment{}
	if ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, d); err != nil {
			return notInstalled(v1alpha1.SyncTargetReasonProgressing, err)
		}
	}
	if ok && d.Status.ObservedGeneration >= d.Generation && d.Status.AvailableReplicas > 0 {
		return condition{v1alpha1.SyncTargetConditionInstalled, metav1.ConditionTrue, v1alpha1.SyncTargetReasonInstalled, ""}
	}
	message := "the Deployment has no available replica"
	for _, c := range d.Status.Conditions {
		if c.Status != "True" && c.Type != appsv1.DeploymentReplicaFailure || c.Status == "True" && c.Type == appsv1.DeploymentReplicaFailure {
			message += fmt.Sprintf("; %s: %s", c.Reason, c.Message)
		}
	}
	return condition{v1alpha1.SyncTargetConditionInstalled, metav1.ConditionFalse, v1alpha1.SyncTargetReasonProgressing, message}
}
