// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/internal/rivals"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// again is when a key is to be worked on again without an event; zero: never.
type again = time.Duration

// work probes the cluster of one ServiceCluster if a probe is due, and writes its status.
func (c *Controller) work(ctx context.Context, p *peer, text string) (again, error) {
	key := loop.ParseKey(text)
	defer p.slots.renounce(key.Namespace, text)
	if p.clusters.Err() != nil {
		return 0, nil // the cache is stale; Flows queues all names when it is fresh again
	}
	of := region.Key{Provider: key.Namespace, Name: key.Name}
	obj, ok := p.clusters.Get(key)
	if !ok || !loop.OwnsKey(c.opts.Shard, of.String()) {
		p.history.forget(text)
		return 0, nil
	}
	cluster, ok := decode(obj)
	if !ok || !counts(cluster) {
		p.history.forget(text)
		return 0, nil
	}
	about := subject{cluster.UID, cluster.Spec.KubeconfigSecret.Name}
	last := p.history.last(text, about)
	if mayProbe(cluster) && (last == nil || !time.Now().Before(last.next)) {
		if !p.slots.take(key.Namespace, text) {
			return 0, c.report(ctx, p, of, obj, c.observe(p, key, cluster, last)) // queued again when a slot is free
		}
		fresh, err := c.probe(ctx, p, of, cluster, last)
		p.slots.give(key.Namespace)
		if err != nil {
			return 0, err
		}
		p.history.keep(text, about, fresh)
		last = &fresh
	}
	if err := c.report(ctx, p, of, obj, c.observe(p, key, cluster, last)); err != nil || last == nil || !mayProbe(cluster) {
		return 0, err
	}
	return max(time.Until(last.next), time.Millisecond), nil
}

func (c *Controller) observe(p *peer, key types.NamespacedName, cluster *v1alpha1.ServiceCluster, last *result) observation {
	o := observation{cluster: cluster, last: last, now: time.Now(), patience: c.opts.Failures}
	if stageOf(cluster) == "" {
		o.occupancy, o.rivals = c.occupancy(p, key)
		o.remove = rivals.Command(clusters.GroupResource().String(), key.Namespace, key.Name)
	}
	return o
}

// probe reads the kubeconfig and probes the cluster. An error means that the peer did not answer, which says nothing
// about the cluster.
func (c *Controller) probe(ctx context.Context, p *peer, of region.Key, cluster *v1alpha1.ServiceCluster, last *result) (result, error) {
	kubeconfig, failed := c.read(ctx, p, cluster)
	if failed != nil && !isKubeconfig(failed) {
		return result{}, &region.Error{Peer: p.name, Region: of, Op: "read kubeconfig", Err: failed}
	}
	begun := time.Now()
	var version v1alpha1.KubernetesVersion
	if failed == nil {
		probeCtx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
		version, failed = c.opts.Probe(probeCtx, kubeconfig)
		cancel()
	}
	if err := ctx.Err(); err != nil {
		return result{}, err
	}
	now := time.Now()
	c.opts.Observer.probed(ctx, ProbeEvent{Region: of, Peer: p.name, Elapsed: now.Sub(begun), Err: failed})
	var before result
	if last != nil {
		before = *last
	}
	return before.after(version, failed, now, &c.opts), nil
}

// read returns the kubeconfig of the Secret that the ServiceCluster names. ErrKubeconfig means that the Secret or the kubeconfig in it is missing.
func (c *Controller) read(ctx context.Context, p *peer, cluster *v1alpha1.ServiceCluster) ([]byte, error) {
	name := cluster.Spec.KubeconfigSecret.Name
	if name == "" {
		return nil, fmt.Errorf("%w: spec.kubeconfigSecret.name is empty: name the Secret that holds it", ErrKubeconfig)
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.CallTimeout)
	defer cancel()
	secret, err := p.conn.Dynamic().Resource(secrets).Namespace(cluster.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) {
		return nil, fmt.Errorf("%w: the Secret %s does not exist: create it in this namespace", ErrKubeconfig, name)
	}
	if err != nil {
		return nil, err
	}
	kubeconfig, ok := dataOf(secret)
	if !ok {
		return nil, fmt.Errorf("%w: the Secret %s has no key %s", ErrKubeconfig, name, SecretKey)
	}
	return kubeconfig, nil
}

// dataOf returns the kubeconfig in a Secret.
func dataOf(secret *unstructured.Unstructured) ([]byte, bool) {
	var s struct {
		Data map[string][]byte `json:"data"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(secret.Object, &s); err != nil {
		return nil, false
	}
	kubeconfig, ok := s.Data[SecretKey]
	return kubeconfig, ok && len(kubeconfig) > 0
}

func isKubeconfig(err error) bool { return errors.Is(err, ErrKubeconfig) }

// report writes the status that follows from the observation, if it differs.
func (c *Controller) report(ctx context.Context, p *peer, of region.Key, obj *unstructured.Unstructured, o observation) error {
	s := plan(o)
	key := loop.KeyText(loop.KeyOf(obj))
	desired, err := desiredOf(obj, s)
	if err != nil {
		return err
	}
	if wait := p.history.pause(key, s, o.now); wait > 0 {
		p.queue.AddAfter(key, wait)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.CallTimeout)
	defer cancel()
	wrote, err := loop.Apply(ctx, p.conn.Dynamic().Resource(clusters).Namespace(obj.GetNamespace()), obj, desired, FieldManager, "status")
	switch {
	case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err):
		return nil // the cache will show the deletion
	case apierrors.IsConflict(err):
		return loop.ErrBehind
	case err != nil:
		return &region.Error{Peer: p.name, Region: of, Op: "report ServiceCluster", Err: err}
	case !wrote:
		return nil
	}
	p.history.written(key, s, time.Now())
	e := ReportEvent{Region: of, Peer: p.name, UID: obj.GetUID(), Phase: s.Phase}
	if before := meta.FindStatusCondition(o.cluster.Status.Conditions, ready); before != nil {
		e.Before = before.Status
	}
	if now := meta.FindStatusCondition(s.Conditions, ready); now != nil {
		e.Ready, e.Reason, e.Message = now.Status, now.Reason, now.Message
	}
	c.opts.Observer.reported(ctx, e)
	return nil
}

// desiredOf returns the object to apply: the status, with the identity of obj.
func desiredOf(obj *unstructured.Unstructured, s status) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		return nil, err
	}
	desired := &unstructured.Unstructured{Object: map[string]any{"status": content}}
	desired.SetAPIVersion(obj.GetAPIVersion())
	desired.SetKind(obj.GetKind())
	desired.SetNamespace(obj.GetNamespace())
	desired.SetName(obj.GetName())
	desired.SetUID(obj.GetUID())
	return desired, nil
}
