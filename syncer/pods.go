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

// podOwner is an object downstream that is the controller of pods, or of a ReplicaSet that is.
type podOwner struct {
	kind  schema.GroupKind
	place types.NamespacedName
	uid   types.UID
}

// ownerOf is the controller of an object; zero: it has none.
func ownerOf(obj metav1.Object) podOwner {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil {
		return podOwner{}
	}
	gv, _ := schema.ParseGroupVersion(ref.APIVersion) // one that cannot be read is that of no copy
	return podOwner{
		kind:  schema.GroupKind{Group: gv.Group, Kind: ref.Kind},
		place: types.NamespacedName{Namespace: obj.GetNamespace(), Name: ref.Name}, uid: ref.UID,
	}
}

// podCounter counts the pods downstream that find no node, for each copy that owns some.
type podCounter struct {
	syncer *Syncer
	// sets are the owners of the ReplicaSets that had such pods the last time: each is read once.
	sets    map[types.UID]podOwner
	refused bool // and that was said
}

// start counts until ctx ends, first at a random time: programs that begin together do not ask together.
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

// count counts once. What is not known stays as it was last known: all of it if a request fails, and that of a type whose
// copies are not fresh.
func (c *podCounter) count(ctx context.Context) error {
	lanes, counted := map[schema.GroupKind]*lane{}, map[*lane]map[types.NamespacedName]v1alpha1.Unscheduled{}
	c.syncer.mu.Lock()
	for _, l := range c.syncer.lanes {
		lanes[l.kind.GroupKind()] = l
	}
	c.syncer.mu.Unlock()
	for kind, l := range lanes {
		if l.fresh() != nil || l.kind.Refused != "" {
			delete(lanes, kind)
			continue
		}
		counted[l] = map[types.NamespacedName]v1alpha1.Unscheduled{}
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
		l := lanes[owner.kind]
		key, _, same := l.copyAt(owner)
		if !same && owner.kind == (schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}) {
			above, err := c.above(ctx, owner, lanes)
			if err != nil {
				return err
			}
			if above.uid != "" { // or else somebody may adopt it yet
				sets[owner.uid] = above
			}
			l = lanes[above.kind]
			key, _, same = l.copyAt(above)
		}
		if same {
			counted[l][key] = plusUnscheduled(counted[l][key], n)
		}
	}
	c.sets = sets
	for l, of := range counted {
		l.setUnscheduled(of)
	}
	return nil
}

// list returns how many pods of each owner find no node.
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

// above returns the owner of a ReplicaSet, of one that is gone itself: as it was when it was read, unless a copy of that name has been made anew, which
// may have taken the ReplicaSet over.
func (c *podCounter) above(ctx context.Context, set podOwner, lanes map[schema.GroupKind]*lane) (podOwner, error) {
	if before, known := c.sets[set.uid]; known {
		if _, there, same := lanes[before.kind].copyAt(before); same || !there {
			return before, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	obj, err := c.syncer.down.Metadata().Resource(replicaSets).Namespace(set.place.Namespace).Get(ctx, set.place.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && obj.UID != set.uid:
		return set, nil // it has gone, and no other has its UID
	case err != nil:
		return podOwner{}, fmt.Errorf("read the owner of ReplicaSet %s: %w", set.place, err)
	}
	return ownerOf(obj), nil
}

// copyAt returns of which upstream object there is a copy at the place of an owner of pods, and whether that copy is the owner.
// l may be nil.
func (l *lane) copyAt(owner podOwner) (key types.NamespacedName, there, same bool) {
	if l == nil {
		return key, false, false
	}
	place := owner.place
	if !l.kind.Namespaced {
		place.Namespace = ""
	}
	d, ok := l.down.Get(place)
	if !ok {
		return key, false, false
	}
	key = originOf(d)
	_, one := l.one.Seen(key)
	_, many := l.many.Seen(key)
	return key, true, d.GetUID() == owner.uid && one+many > 0
}
