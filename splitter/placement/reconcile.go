// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

func (c *Controller) work(ctx context.Context, key string) (time.Duration, error) {
	number, rest, _ := strings.Cut(key, "/")
	namespace, name, _ := strings.Cut(rest, "/")
	if number == policyKeys {
		return c.report(ctx, types.NamespacedName{Namespace: namespace, Name: name})
	}
	i, err := strconv.Atoi(number)
	if err != nil {
		return 0, fmt.Errorf("placement: key %q: %w", key, err)
	}
	k := c.kinds[i]
	obj, ok := k.objects.Get(types.NamespacedName{Namespace: namespace, Name: name})
	if !ok || obj.GetDeletionTimestamp() != nil || foreign(obj, k.divided) {
		c.forget(key)
		return 0, nil
	}
	list, known := c.now()
	if !known || k.objects.Err() != nil || c.policyCache.Err() != nil {
		return 0, nil // decide nothing from stale or unknown input: Flows requeues all objects
	}
	var again time.Duration
	f, err := c.observe(k, key, obj, list, &again)
	if errors.Is(err, errNotKnown) {
		return 0, nil // Flows, or an event of the namespace, requeues the object
	}
	if err != nil {
		return 0, err
	}
	after, ok, err := f.decide()
	if err != nil || !ok {
		return 0, err
	}
	c.keep(key, after.leaving)
	change, err := after.metadata(obj, f.before, !k.divided)
	if err != nil || len(change) == 0 {
		return again, err
	}
	err = c.write(ctx, k, obj, change)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return 0, loop.ErrBehind // another client has written: the event of its write requeues the object
	}
	c.opts.Observer.placed(ctx, PlacedEvent{
		Resource: k.gvr.GroupResource(), APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Object: loop.KeyOf(obj), UID: obj.GetUID(),
		Before: f.before.clusters, After: after.clusters, Leaving: after.leaving, By: after.by, Err: err,
	})
	return again, err
}

// now returns the clusters with their States, false if they are not known yet.
func (c *Controller) now() ([]splitter.Cluster, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list, c.known
}

// foreign reports whether another client places an object: it has ClusterLabel, is a shard, or
// belongs to a ClusterDaemonSet. unlabeled is true for objects that this Controller never labels for a
// cluster, such as workloads: if such an object has the label of a cluster, another client set it.
func foreign(obj *unstructured.Unstructured, unlabeled bool) bool {
	for label := range obj.GetLabels() {
		if label == syncerv1alpha1.ClusterLabel || label == v1alpha1.ParentLabel || label == v1alpha1.ClusterDaemonSetLabel ||
			unlabeled && strings.HasPrefix(label, syncerv1alpha1.StateLabelPrefix) {
			return true
		}
	}
	return false
}

// observe returns the input of a decision about an object. It lowers *again to the time until a toleration ends, and
// facts.held lowers it to the time after which the result of facts.held may differ. Zero in *again means no time.
func (c *Controller) observe(k *kind, key string, obj *unstructured.Unstructured, list []splitter.Cluster, again *time.Duration) (facts, error) {
	f := facts{obj: obj, divided: k.divided, clusters: list, fresh: true, held: c.lingers(key, again)}
	f.before, f.placed, _ = read(obj) // a division that cannot be read is overwritten
	p, selected, err := c.policies.decides(obj, k.divided)
	if err != nil {
		return facts{}, err
	}
	if selected {
		f.policy = &p
		var ends time.Duration
		f.clusters, ends = Tolerate(p.spec.Tolerations, list, time.Now())
		*again = loop.Sooner(*again, ends)
	}
	if k.divided {
		shards := c.index.clustersOf(obj.GetUID())
		f.occupied, f.held = union(f.before.clusters, shards), func(cluster string) bool { return slices.Contains(shards, cluster) }
	} else {
		f.occupied, f.fresh = f.before.clusters, c.fresh(k)
		f.follows = c.index.follows(k, obj)
	}
	return f, nil
}

// fresh reports whether the caches of all objects that may refer to an object of the kind are fresh.
func (c *Controller) fresh(of *kind) bool {
	return !slices.ContainsFunc(c.kinds, func(k *kind) bool { return k.leads(of) && k.objects.Err() != nil })
}

// leads reports whether the placement of objects of the other kind depends on objects of this kind.
func (k *kind) leads(other *kind) bool {
	switch is, to := k.gvr.GroupResource(), other.gvr.GroupResource(); {
	case k.divided:
		return true
	case is == ingresses, is.String() == serviceAccounts:
		return to.String() == secrets
	default:
		return is.String() == services && (to == ingresses || to.String() == secrets)
	}
}

// lingers returns a func that reports whether an object still stays in a cluster that it has to leave. The func stores
// the remaining time in *again, unless *again has a shorter time.
func (c *Controller) lingers(key string, again *time.Duration) func(cluster string) bool {
	now := time.Now()
	return func(cluster string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		since, ok := c.left[key][cluster]
		if !ok {
			since = now
			if c.left[key] == nil {
				c.left[key] = map[string]time.Time{}
			}
			c.left[key][cluster] = since
		}
		rest := c.opts.Linger - now.Sub(since)
		*again = loop.Sooner(*again, rest)
		return rest > 0
	}
}

// keep deletes the recorded times at which an object began to leave clusters, except those of the clusters in
// leaving.
func (c *Controller) keep(key string, leaving []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.left[key], func(cluster string, _ time.Time) bool { return !slices.Contains(leaving, cluster) })
	if len(c.left[key]) == 0 {
		delete(c.left, key)
	}
}

func (c *Controller) forget(key string) { c.keep(key, nil) }

// write patches the metadata of an object. It returns a Conflict if the object has changed since it
// was read.
func (c *Controller) write(ctx context.Context, k *kind, obj *unstructured.Unstructured, change map[string]any) error {
	change["uid"], change["resourceVersion"] = obj.GetUID(), obj.GetResourceVersion()
	patch, err := json.Marshal(map[string]any{"metadata": change})
	if err != nil {
		return err
	}
	_, err = c.up.Metadata().Resource(k.gvr).Namespace(obj.GetNamespace()).Patch(ctx, obj.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: Manager})
	if err != nil {
		return fmt.Errorf("placement: write %s %s: %w", k.gvr.GroupResource(), loop.KeyOf(obj), err)
	}
	return nil
}
