// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// installManager is the field manager of installed objects.
const installManager = manager + "-install"

var (
	deploymentResource  = appsv1.SchemeGroupVersion.WithResource("deployments")
	clusterRoles        = rbacv1.SchemeGroupVersion.WithResource("clusterroles")
	clusterRoleBindings = rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")
	serviceAccounts     = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

	installed = map[string]schema.GroupVersionResource{
		"Namespace": namespaces, "ServiceAccount": serviceAccounts, "Secret": secrets, "Deployment": deploymentResource,
		"ClusterRole": clusterRoles, "ClusterRoleBinding": clusterRoleBindings,
	}
)

// identity returns the UID of the upstream's namespace kube-system. It is read once.
func (t *Targets) identity(ctx context.Context) (string, error) {
	t.mu.Lock()
	known := t.upstreamUID
	t.mu.Unlock()
	if known != "" {
		return string(known), nil
	}
	uid, err := uidOf(ctx, t.up)
	if err != nil {
		return "", fmt.Errorf("upstream: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.upstreamUID = uid
	return string(uid), nil
}

// ownInstall returns an Install with the fields that name the installation of a SyncTarget.
func (t *Targets) ownInstall(ctx context.Context, target *v1alpha1.SyncTarget) (Install, error) {
	identity, err := t.identity(ctx)
	return Install{Target: target.Name, Upstream: identity}, err
}

// install applies the installation, and returns the condition Installed. A heartbeat is no reason to apply it again.
func (t *Targets) install(ctx context.Context, target *v1alpha1.SyncTarget, e *engaged) (said, error) {
	own, err := t.ownInstall(ctx, target)
	if err != nil {
		return said{}, err
	}
	disturbed := e.disturbed.Swap(false)
	if !disturbed && e.generation == target.Generation && time.Since(e.placed) < t.opts.Recheck {
		return e.available(own), nil
	}
	e.placed = time.Time{}
	in, err := t.opts.Install(ctx, target)
	if err != nil {
		return notInstalled(v1alpha1.SyncTargetReasonRefused, err), nil
	}
	in.Target, in.Upstream, in.Heartbeat = own.Target, own.Upstream, t.opts.Heartbeat
	manifests, err := Manifests(in)
	if err != nil {
		return notInstalled(v1alpha1.SyncTargetReasonRefused, err), nil
	}
	for _, obj := range manifests {
		if err := e.place(ctx, obj); err != nil {
			return notInstalled(reasonOf(err), err), nil
		}
	}
	e.placed, e.generation = time.Now(), target.Generation
	return e.available(own), nil
}

// installedTypes selects the types whose objects the installed Syncer has given its finalizer; all types if Install
// fails.
func (t *Targets) installedTypes(ctx context.Context, target *v1alpha1.SyncTarget) TypeFilter {
	in, err := t.opts.Install(ctx, target)
	if err != nil {
		return func(schema.GroupResource) bool { return true }
	}
	if in.Types == nil {
		in.Types = WorkloadTypes()
	}
	return func(gr schema.GroupResource) bool { return slices.Contains(in.Types, gr) }
}

func notInstalled(reason v1alpha1.SyncTargetConditionReason, err error) said {
	return said{v1alpha1.SyncTargetConditionInstalled, metav1.ConditionFalse, reason, err.Error()}
}

var errForeign = errors.New("an object of this name exists and does not belong to this installation")

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

// place applies one object. An object in our namespace is ours. Any other one must have our label, or must not exist
// yet.
func (e *engaged) place(ctx context.Context, obj *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	what := fmt.Sprintf("install %s %s", obj.GetKind(), obj.GetName())
	if obj.GetNamespace() == "" {
		if _, err := e.ours(ctx, installed[obj.GetKind()], obj.GetName(), obj.GetLabels()[InstallationLabel]); err != nil && !apierrors.IsNotFound(err) {
			return wrap(what, err)
		}
	}
	client := e.conn.Dynamic().Resource(installed[obj.GetKind()]).Namespace(obj.GetNamespace())
	_, err := client.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: installManager, Force: true})
	return wrap(what, err)
}

// ours returns a cluster-scoped object, or errForeign if it does not have the label of the owner.
func (e *engaged) ours(ctx context.Context, gvr schema.GroupVersionResource, name, owner string) (*metav1.PartialObjectMetadata, error) {
	there, err := e.conn.Metadata().Resource(gvr).Get(ctx, name, metav1.GetOptions{})
	if err == nil && there.Labels[InstallationLabel] != owner {
		err = errForeign
	}
	return there, err
}

// available returns the condition Installed by the state of the Deployment.
func (e *engaged) available(in Install) said {
	obj, ok := e.deployments.Get(types.NamespacedName{Namespace: in.name(), Name: program})
	d := &appsv1.Deployment{}
	if ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, d); err != nil {
			return notInstalled(v1alpha1.SyncTargetReasonProgressing, err)
		}
	}
	if ok && d.Status.ObservedGeneration >= d.Generation && d.Status.AvailableReplicas > 0 {
		return said{v1alpha1.SyncTargetConditionInstalled, metav1.ConditionTrue, v1alpha1.SyncTargetReasonInstalled, ""}
	}
	message := "the Deployment has no available replica"
	for _, c := range d.Status.Conditions {
		if c.Status != "True" && c.Type != appsv1.DeploymentReplicaFailure || c.Status == "True" && c.Type == appsv1.DeploymentReplicaFailure {
			message += fmt.Sprintf("; %s: %s", c.Reason, c.Message)
		}
	}
	return said{v1alpha1.SyncTargetConditionInstalled, metav1.ConditionFalse, v1alpha1.SyncTargetReasonProgressing, message}
}

// uninstall deletes the installed objects, one step per call. It returns the object that it waits for; empty if none
// is left.
func (t *Targets) uninstall(ctx context.Context, target *v1alpha1.SyncTarget, e *engaged) (left string, err error) {
	in, err := t.ownInstall(ctx, target)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	namespace, err := e.ours(ctx, namespaces, in.name(), in.owner())
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
	there, err := e.ours(ctx, gvr, in.name(), in.owner())
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

// leave uninstalls the syncer of a SyncTarget that is being deleted, and waits until it has ended. done is true when
// no syncer works for the SyncTarget any longer.
func (t *Targets) leave(ctx context.Context, target *v1alpha1.SyncTarget) (done bool, again time.Duration, err error) {
	abandoned := target.Annotations[v1alpha1.AbandonAnnotation] == "true"
	if !abandoned && t.opts.mode(target) == Pull {
		left, err := t.uninstallFrom(ctx, target)
		if err != nil {
			why := fmt.Errorf("%w; to release the SyncTarget although the syncer stays there, annotate it: %s=true", err, v1alpha1.AbandonAnnotation)
			return false, t.opts.Recheck, t.say(ctx, target, notInstalled(reasonOf(err), why))
		}
		if left != "" {
			return false, min(shortRetry, t.opts.Recheck), t.say(ctx, target, notInstalled(v1alpha1.SyncTargetReasonUninstalling, errors.New(left+" is not gone yet")))
		}
	}
	if target.Status.LastSyncerHeartbeatTime == nil || hasEnded(target) {
		return true, 0, nil
	}
	wait := t.listen(target)
	return wait == 0, wait, nil
}

func (t *Targets) uninstallFrom(ctx context.Context, target *v1alpha1.SyncTarget) (string, error) {
	kubeconfig, err := t.kubeconfig(ctx, target)
	if err != nil {
		return "", err
	}
	if kubeconfig == nil {
		return "", nil // without a kubeconfig nothing was installed
	}
	e, err := t.engage(ctx, target, Pull, kubeconfig)
	if err != nil {
		return "", err
	}
	return t.uninstall(ctx, target, e)
}

// isHeld reports whether a SyncTarget has our finalizer.
func isHeld(target *v1alpha1.SyncTarget) bool {
	return slices.Contains(target.Finalizers, targetFinalizer)
}
