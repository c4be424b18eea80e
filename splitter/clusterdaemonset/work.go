// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// retried is the delay after which the Controller requeues a ClusterDaemonSet if another object has the name of a
// Deployment, if the API server has Deployments that the cache does not show, or if a Deployment is being deleted:
// the event of its end requeues no key if another client has changed its annotations.
const retried = 10 * time.Second

func (c *Controller) work(ctx context.Context, text string) (again time.Duration, err error) {
	if !loop.OwnsKey(c.opts.Shard, "ClusterDaemonSet/"+text) || c.sets.Err() != nil || c.copies.Err() != nil {
		return 0, nil // decide nothing from a stale cache: Flows requeues all when it is fresh
	}
	event := CarriedEvent{ClusterDaemonSet: loop.ParseKey(text)}
	again, err = c.reconcile(ctx, &event)
	if apierrors.IsConflict(err) {
		err = loop.ErrBehind // another client has written: the event of its write requeues the key
	} else {
		event.Err = err
	}
	c.opts.Observer.carried(ctx, event)
	return again, err
}

func (c *Controller) reconcile(ctx context.Context, event *CarriedEvent) (time.Duration, error) {
	key := event.ClusterDaemonSet
	set, ok := c.sets.Get(key)
	if !ok {
		set = nil
	}
	copies := map[string]*unstructured.Unstructured{}
	var others []*unstructured.Unstructured
	for _, at := range c.index.Of(key) {
		obj, there := c.copies.Get(at)
		switch {
		case !there:
		case marked(obj, set):
			copies[clusterOf(obj)] = obj
		default:
			others = append(others, obj)
		}
	}
	if err := c.orphans(ctx, event, others); err != nil || set == nil {
		return 0, err
	}
	clusters, known := c.now()
	for _, cluster := range clusters {
		at := types.NamespacedName{Namespace: key.Namespace, Name: splitter.ShardName(key.Name, cluster.Name)}
		if obj, ok := c.copies.Get(at); ok && marked(obj, set) {
			copies[cluster.Name] = obj // also if another client has changed the annotations
		}
	}
	switch {
	case !carriedOut(set, c.opts.Label):
		return c.end(ctx, event, set, copies)
	case !known:
		return 0, nil // all are requeued when the clusters are known
	case !slices.Contains(set.GetFinalizers(), v1alpha1.ShardsFinalizer):
		// Write the finalizer first, so that no Deployment outlives its ClusterDaemonSet. The event of this
		// write requeues the key.
		mark := loop.Identity(set)
		mark.SetFinalizers([]string{v1alpha1.ShardsFinalizer})
		mark.SetResourceVersion(set.GetResourceVersion())
		_, err := loop.Apply(ctx, c.metaSets(key.Namespace), set, mark, Manager)
		return 0, err
	}
	p := facts{set: set, clusters: clusters, copies: copies, label: c.opts.Label, now: time.Now()}.plan()
	return c.apply(ctx, event, set, p)
}

// apply writes the Deployments of a plan, then the status of the ClusterDaemonSet.
func (c *Controller) apply(ctx context.Context, event *CarriedEvent, set *unstructured.Unstructured, p plan) (time.Duration, error) {
	var errs []error
	for i := range p.parts {
		part := &p.parts[i]
		if part.desired == nil || p.invalid != nil {
			continue
		}
		changed, err := c.write(ctx, part)
		switch {
		case apierrors.IsConflict(err):
			return 0, err // the plan comes from an older state
		case apierrors.IsInvalid(err):
			p.invalid = err
		}
		if err != nil {
			errs, part.state = append(errs, err), failed
		}
		if changed {
			event.Written = append(event.Written, part.desired.GetName())
		}
		if part.state == taken || part.state == leaving {
			p.again = loop.Sooner(p.again, retried)
		}
	}
	for _, obj := range p.surplus {
		if err := c.remove(ctx, event, obj); err != nil {
			errs = append(errs, err)
		}
	}
	desired := loop.Identity(set)
	desired.Object["status"] = status(set, p, time.Now())
	if _, err := loop.Apply(ctx, c.metaSets(set.GetNamespace()), set, desired, Manager, "status"); err != nil {
		errs = append(errs, err)
	}
	if others := slices.DeleteFunc(slices.Clone(errs), apierrors.IsConflict); len(others) > 0 {
		errs = others // an error that contains a Conflict would count as one
	}
	return p.again, errors.Join(errs...)
}

// write creates or updates the Deployment of a part, and sets the part's state. It reports whether it changed
// anything.
func (c *Controller) write(ctx context.Context, part *part) (changed bool, err error) {
	client := c.metaCopies(part.desired.GetNamespace())
	if part.current == nil {
		if part.state, err = c.occupied(ctx, part.desired); part.state != pending || err != nil {
			return false, err
		}
		// No object has resourceVersion 1. The apply therefore creates the Deployment, or fails with a
		// Conflict if an object exists that the cache does not show.
		part.desired.SetResourceVersion("1")
		_, err := loop.Write(ctx, client, nil, part.desired, Manager)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			return false, c.met(ctx, part)
		}
		return err == nil, err
	}
	if part.current.GetDeletionTimestamp() != nil {
		part.state = leaving // it is created again after the deletion
		return false, nil
	}
	part.desired.SetUID(part.current.GetUID())
	part.desired.SetResourceVersion(part.current.GetResourceVersion())
	if !loop.Differs(part.current, part.desired, Manager) {
		part.state = applied
		return false, nil
	}
	after, err := loop.Write(ctx, client, part.current, part.desired, Manager)
	if err == nil && after == part.current.GetResourceVersion() {
		part.state = applied // the server changed nothing
		return false, nil
	}
	return err == nil, err
}

// occupied returns leaving if a Deployment of an earlier ClusterDaemonSet of this name, which is deleted first, has the
// name of desired; taken if another object has the name; and pending otherwise. If the name was taken before, occupied
// reads the object live, since the cache has only Deployments with the label.
func (c *Controller) occupied(ctx context.Context, desired *unstructured.Unstructured) (state, error) {
	key := loop.KeyOf(desired)
	if present, there := c.copies.Get(key); there {
		if setOf(present) == desired.GetAnnotations()[v1alpha1.ParentAnnotation] {
			return leaving, nil
		}
		return taken, nil
	}
	if _, was := c.taken.Load(key); !was {
		return pending, nil
	}
	_, err := c.copiesIn(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		c.taken.Delete(key)
		return pending, nil
	case err != nil:
		return pending, fmt.Errorf("read Deployment %s: %w", key, err)
	}
	return taken, nil
}

// met is called when a Deployment could not be created because an object of its name exists that the cache does not
// show. It reads the object live, and records the name as taken if the object belongs to no ClusterDaemonSet.
func (c *Controller) met(ctx context.Context, part *part) error {
	live, err := c.copiesIn(part.desired.GetNamespace()).Get(ctx, part.desired.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil // the event of its deletion requeues the key
	case err != nil:
		return fmt.Errorf("read Deployment %s: %w", loop.KeyOf(part.desired), err)
	case live.GetLabels()[v1alpha1.ClusterDaemonSetLabel] == "":
		part.state = taken
		c.taken.Store(loop.KeyOf(part.desired), true)
	}
	return nil
}

// remove deletes a Deployment by UID, so that it does not delete a later object of the same name.
func (c *Controller) remove(ctx context.Context, event *CarriedEvent, obj *unstructured.Unstructured) error {
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	err := c.copiesIn(obj.GetNamespace()).Delete(ctx, obj.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: new(obj.GetUID())}, PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove Deployment %s: %w", loop.KeyOf(obj), err)
	}
	event.Removed = append(event.Removed, obj.GetName())
	return nil
}

// orphans deletes those Deployments whose ClusterDaemonSet is gone or was replaced. It reads the ClusterDaemonSet
// live, since the cache may be stale.
func (c *Controller) orphans(ctx context.Context, event *CarriedEvent, copies []*unstructured.Unstructured) error {
	if len(copies) == 0 {
		return nil
	}
	key, uid := event.ClusterDaemonSet, types.UID("")
	switch live, err := c.up.Dynamic().Resource(setsResource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{}); {
	case err == nil:
		uid = live.GetUID()
	case !apierrors.IsNotFound(err) || apierrors.IsUnexpectedServerError(err): // an unserved type does not prove absence
		return fmt.Errorf("read ClusterDaemonSet %s: %w", key, err)
	}
	for _, obj := range copies {
		if uid != "" && obj.GetLabels()[v1alpha1.ClusterDaemonSetLabel] == string(uid) {
			continue
		}
		if err := c.remove(ctx, event, obj); err != nil {
			return err
		}
	}
	return nil
}

// end deletes the Deployments of a ClusterDaemonSet, and then removes its finalizer. If the API server has
// Deployments that the cache does not show, end returns the time after which to requeue the key.
func (c *Controller) end(ctx context.Context, event *CarriedEvent, set *unstructured.Unstructured, copies map[string]*unstructured.Unstructured) (time.Duration, error) {
	for _, obj := range copies {
		if err := c.remove(ctx, event, obj); err != nil {
			return 0, err
		}
	}
	switch {
	case len(copies) > 0:
		return retried, nil // most events of the Deployments requeue the key earlier: see retried
	case !slices.Contains(set.GetFinalizers(), v1alpha1.ShardsFinalizer):
		return 0, nil
	}
	live, err := c.copiesIn(set.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.ClusterDaemonSetLabel + "=" + string(set.GetUID())})
	if err != nil {
		return 0, fmt.Errorf("list Deployments of %s: %w", loop.KeyOf(set), err)
	}
	left := time.Duration(0)
	for i := range live.Items {
		// A Deployment that another client created under another name stays: it belongs to that client.
		if obj := &live.Items[i]; obj.GetName() == splitter.ShardName(set.GetName(), obj.GetLabels()[c.opts.Label]) || setOf(obj) == set.GetName() {
			left = retried
			if err := c.remove(ctx, event, obj); err != nil {
				return 0, err
			}
		}
	}
	if left > 0 {
		return left, nil
	}
	return 0, loop.RemoveFinalizer(ctx, c.metaSets(set.GetNamespace()), set, v1alpha1.ShardsFinalizer, Manager)
}

func (c *Controller) copiesIn(namespace string) dynamic.ResourceInterface {
	return c.up.Dynamic().Resource(deploymentsResource).Namespace(namespace)
}

// metaCopies and metaSets return clients for writes, which read only the metadata of each response.
func (c *Controller) metaCopies(namespace string) metadata.ResourceInterface {
	return c.up.Metadata().Resource(deploymentsResource).Namespace(namespace)
}

func (c *Controller) metaSets(namespace string) metadata.ResourceInterface {
	return c.up.Metadata().Resource(setsResource).Namespace(namespace)
}
