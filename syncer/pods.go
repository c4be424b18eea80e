// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var (
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
)

// podOwner is a downstream object that is the controller of pods, or of a ReplicaSet that is the controller of pods.
type podOwner struct {
	kind  schema.GroupKind
	place types.NamespacedName
	uid   types.UID
}

// ownerOf returns the controller of an object; zero if it has none.
func ownerOf(obj metav1.Object) podOwner {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil {
		return podOwner{}
	}
	gv, _ := schema.ParseGroupVersion(ref.APIVersion) // no synced type has an invalid one
	return podOwner{
		kind:  schema.GroupKind{Group: gv.Group, Kind: ref.Kind},
		place: types.NamespacedName{Namespace: obj.GetNamespace(), Name: ref.Name}, uid: ref.UID,
	}
}

// podCounter counts the downstream pods that have no node, by the downstream object that owns them.
type podCounter struct {
	syncer *Syncer
	// sets are the owners of the ReplicaSets that had pods without a node at the last count, so that each owner is
	// read only once.
	sets    map[types.UID]podOwner
	refused bool // a right to count pods is missing, and that was reported
}

// start counts until ctx ends. The first delay is random, so that programs that start together do not list together.
func (c *podCounter) start(ctx context.Context) {
	every := c.syncer.opts.Unscheduled
	for pause := rand.N(every) + 1; ; pause = every + rand.N(every/5+1) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		err := c.count(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			logging.From(ctx).Info("Pods that find no node are not counted", "reason", err.Error())
		}
		if forbidden := apierrors.IsForbidden(err); forbidden != c.refused && (forbidden || err == nil) {
			c.refused = forbidden
			event := ProblemEvent{Resource: pods.GroupResource()}
			if forbidden {
				event.Reason, event.Message = ReasonForbidden, err.Error()
			}
			c.syncer.opts.Observer.problem(ctx, event)
		}
	}
}

// count counts the pods once and records the counts. If a request fails, the last counts of all types stay. If a
// cache is stale, the last counts of its type stay.
func (c *podCounter) count(ctx context.Context) error {
	byKind, counted := map[schema.GroupKind]*syncedType{}, map[*syncedType]map[types.NamespacedName]v1alpha1.Unscheduled{}
	for _, t := range c.syncer.synced() {
		if t.caches.staleErr() == nil {
			byKind[t.kind.GroupKind()], counted[t.syncedType] = t.syncedType, map[types.NamespacedName]v1alpha1.Unscheduled{}
		}
	}
	found, err := c.list(ctx)
	if err != nil {
		return err
	}
	if err := c.syncer.sameDownstream(ctx); err != nil {
		return err
	}
	sets := map[types.UID]podOwner{}
	for owner, n := range found {
		r := byKind[owner.kind]
		key, _, same := r.ownedAt(owner)
		if !same && owner.kind == (schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}) {
			above, err := c.above(ctx, owner, byKind)
			if err != nil {
				return err
			}
			if above.uid != "" { // a ReplicaSet without an owner may be adopted later
				sets[owner.uid] = above
			}
			r = byKind[above.kind]
			key, _, same = r.ownedAt(above)
		}
		if same {
			counted[r][key] = plusUnscheduled(counted[r][key], n)
		}
	}
	c.sets = sets
	for r, now := range counted {
		for _, of := range r.records.setUnscheduled(now) {
			c.syncer.add(of.queueKey(r.name))
		}
	}
	return nil
}

// list returns how many pods of each owner have no node.
func (c *podCounter) list(ctx context.Context) (map[podOwner]v1alpha1.Unscheduled, error) {
	found := map[podOwner]v1alpha1.Unscheduled{}
	opts := metav1.ListOptions{FieldSelector: "status.phase=Pending", Limit: 500}
	for {
		page, err := c.page(ctx, opts)
		if err != nil {
			return nil, wrap("list pending pods", err)
		}
		for i := range page.Items {
			pod := &page.Items[i]
			if message, ok := unschedulable(pod); ok {
				owner := ownerOf(pod)
				found[owner] = plusUnscheduled(found[owner], v1alpha1.Unscheduled{Pods: 1, Message: message})
			}
		}
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			return found, nil
		}
	}
}

func (c *podCounter) page(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.syncer.down.Dynamic().Resource(pods).List(ctx, opts)
}

// above returns the owner of a ReplicaSet, or the ReplicaSet itself if it is gone. It uses the owner that the last
// count read, unless that owner was deleted and created again since: the new object may have adopted the ReplicaSet.
func (c *podCounter) above(ctx context.Context, set podOwner, byKind map[schema.GroupKind]*syncedType) (podOwner, error) {
	if before, known := c.sets[set.uid]; known {
		if _, exists, same := byKind[before.kind].ownedAt(before); same || !exists {
			return before, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	obj, err := c.syncer.down.Metadata().Resource(replicaSets).Namespace(set.place.Namespace).Get(ctx, set.place.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && obj.UID != set.uid:
		return set, nil // it is gone, and no other object has its UID
	case err != nil:
		return podOwner{}, fmt.Errorf("read the owner of ReplicaSet %s: %w", set.place, err)
	}
	return ownerOf(obj), nil
}

// ownedAt looks up the downstream object that has the namespace and name of an owner of pods. It returns the upstream
// key of this object, whether the object exists, and whether it is the owner and has an origin in the caches. r may be
// nil.
func (r *syncedType) ownedAt(owner podOwner) (key types.NamespacedName, exists, same bool) {
	if r == nil {
		return key, false, false
	}
	place := owner.place
	if !r.kind.Namespaced {
		place.Namespace = ""
	}
	d, ok := r.caches.down.Get(place)
	if !ok {
		return key, false, false
	}
	key = originOf(d)
	return key, true, d.GetUID() == owner.uid && r.caches.hasOrigin(key)
}
