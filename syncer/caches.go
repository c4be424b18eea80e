// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// caches are the caches of one type.
type caches struct {
	// The cache one has the upstream objects whose label Options.Label names this target. The cache many has those
	// with the label v1alpha1.StateLabelPrefix of this target, which may have the labels of other targets too. The
	// cache down has the downstream objects with our owner label.
	one, many, down *loop.Objects
	// The cache born has the downstream objects with the label v1alpha1.StateUpsync, and the cache raised the upstream
	// objects that were created for them. Both are nil if Options.Upsync does not select the type.
	born, raised *loop.Objects
	// reportOnly is true if the type is refused. Then the syncer only reports its objects: it reads them on the side
	// where they come from, and does not read the other side.
	reportOnly bool

	mu     sync.Mutex
	denied error // why the objects of a refused type cannot be listed; nil: they can
}

// cacheEvents are the callbacks for changes of the caches. They must not block.
type cacheEvents struct {
	fresh func() // a cache has become fresh, or stale
	// object, place, raised and born receive the key of a changed object. listed is true if a list showed the
	// change, and false if a watch did.
	object, place, raised, born func(key types.NamespacedName, listed bool)
	appeared                    func(place types.NamespacedName)     // a watch shows a downstream object for the first time
	withdrawn                   func(obj *unstructured.Unstructured) // a watch reports that an origin was deleted or is no longer selected
}

func newCaches(s *Syncer, k kind, of rules, on cacheEvents) *caches {
	c := &caches{reportOnly: k.Refused != ""}
	scaler := s.autoscalers.typeOf(k.GVR.GroupResource())
	watch := func(changed func(types.NamespacedName, bool)) loop.ObjectsOptions {
		return loop.ObjectsOptions{
			Packed: true, Flows: on.fresh,
			Indexed: scaler != nil, // no object is reconciled before all autoscalers are known
			Changed: func(key types.NamespacedName) { changed(key, false) },
			Listed:  func(key types.NamespacedName) { changed(key, true) },
		}
	}
	origins := func(labels string) *loop.Objects {
		opts := watch(on.object)
		opts.Labels, opts.Note, opts.Removed = labels, (*unstructured.Unstructured).GetResourceVersion, on.withdrawn
		opts.Strip = keepOrigin(of, s.statusManager, s.fieldsManager)
		return loop.NewObjects(s.up.Dynamic(), k.GVR, opts)
	}
	c.one = origins(s.opts.Label + "=" + s.opts.Target)
	c.many = origins(v1alpha1.StateLabelPrefix + s.opts.Target + "=" + v1alpha1.StateSync)
	down := watch(on.place)
	down.Labels, down.Note, down.Appeared = ownerLabel+"="+s.owner, versionAndStatus, on.appeared
	down.Strip = keepDownstream(scaler, of, manager, s.statusManager)
	c.down = loop.NewObjects(s.down.Dynamic(), k.GVR, down)
	if s.opts.Upsync == nil || !s.opts.Upsync(k.GVR.GroupResource()) {
		return c
	}
	born := watch(on.born)
	born.Labels, born.Strip = v1alpha1.StateLabelPrefix+s.opts.Target+"="+v1alpha1.StateUpsync, keepContent()
	c.born = loop.NewObjects(s.down.Dynamic(), k.GVR, born)
	raised := watch(on.raised)
	raised.Labels, raised.Strip = ownerLabel+"="+s.owner, keepContent(s.bornManager, s.statusManager)
	c.raised = loop.NewObjects(s.up.Dynamic(), k.GVR, raised)
	return c
}

// keepContent returns a func that strips an object for a cache. Of the managedFields it keeps only those of the given
// managers. It drops kubectl's last-applied annotation, which can be as large as the rest of the object.
func keepContent(managers ...string) func(*unstructured.Unstructured) {
	keep := loop.KeepManager(managers...)
	return func(obj *unstructured.Unstructured) {
		keep(obj)
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	}
}

// keepOrigin returns a func that strips an upstream object to the parts that a reconcile reads.
func keepOrigin(of rules, managers ...string) func(*unstructured.Unstructured) {
	if slices.ContainsFunc(of, goesUp) {
		managers = append(managers, splitterv1alpha1.Manager) // a field that a Splitter owns does not go up
	}
	return keepContent(managers...)
}

// keepDownstream returns a func that strips a downstream object to its metadata, status, the fields that go up, and the
// target of an autoscaler.
func keepDownstream(scaler *workload.Type, of rules, managers ...string) func(*unstructured.Unstructured) {
	keep := keepContent(managers...)
	read := []string{"apiVersion", "kind", "metadata", "status"}
	if scaler != nil {
		read = slices.AppendSeq(read, maps.Keys(scaler.Roots()))
	}
	return func(obj *unstructured.Unstructured) {
		keep(obj)
		kept := fields(obj, goesUp, of)
		for _, field := range read {
			if v, ok := obj.Object[field]; ok {
				kept[field] = v
			}
		}
		obj.Object = kept
	}
}

// versionAndStatus returns the resourceVersion of obj, with a suffix if obj has a status. So an object that was created
// with a status never equals the version in writes.created, and a reconcile brings its status up.
func versionAndStatus(obj *unstructured.Unstructured) string {
	if status, _ := obj.Object["status"].(map[string]any); len(status) > 0 {
		return obj.GetResourceVersion() + " with status"
	}
	return obj.GetResourceVersion()
}

// isDownstream reports whether o reads from the downstream.
func (c *caches) isDownstream(o *loop.Objects) bool { return o == c.down || o == c.born }

// used returns the caches that run.
func (c *caches) used() []*loop.Objects {
	all := []*loop.Objects{c.one, c.many}
	if !c.reportOnly {
		all = append(all, c.down)
	}
	if c.born != nil {
		all = append(all, c.born)
		if !c.reportOnly {
			all = append(all, c.raised)
		}
	}
	return all
}

// required returns the caches whose first lists the sweeper waits for. For a refused type these are only the caches of
// origins, since the right to read the type downstream may be missing.
func (c *caches) required() []*loop.Objects {
	if c.reportOnly {
		return []*loop.Objects{c.one, c.many}
	}
	return c.used()
}

// staleErr returns an error if a cache of origins or of their downstream objects is stale. Then nothing may be
// decided: a stale cache may lack an object that exists. For a refused type only the caches of origins count, and
// staleErr also returns an error if the objects cannot be listed.
func (c *caches) staleErr() error {
	up := errors.Join(wrap("upstream", c.one.Err()), wrap("upstream", c.many.Err()))
	if !c.reportOnly {
		return errors.Join(up, wrap("downstream", c.down.Err()))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.denied != nil {
		return c.denied
	}
	return up
}

// bornFresh returns an error if the cache born or the cache raised is stale. A reconcile of an object that was born
// downstream needs both caches. For a refused type only the cache born counts.
func (c *caches) bornFresh() error {
	if c.reportOnly {
		return wrap("downstream", c.born.Err())
	}
	return errors.Join(wrap("upstream", c.raised.Err()), wrap("downstream", c.born.Err()))
}

// deny records why the objects of a refused type cannot be listed. A nil err means that they can be listed.
func (c *caches) deny(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denied = err
}

// mayRead waits while the given side forbids this syncer to list the objects of a refused type. It returns false if
// ctx ends first. A syncer does not need the right to list them, so retries are rare.
func (c *caches) mayRead(ctx context.Context, side client) bool {
	for {
		err := side.probe(ctx)
		if !apierrors.IsForbidden(err) {
			c.deny(nil)
			return ctx.Err() == nil
		}
		c.deny(err)
		select {
		case <-time.After(retryRejected):
		case <-ctx.Done():
			return false
		}
	}
}

// origin returns the selected upstream object with that key, or nil. shared is true if the object is in the cache many
// only: then it may have labels of several targets.
func (c *caches) origin(key types.NamespacedName) (u *unstructured.Unstructured, shared bool) {
	if u, ok := c.one.Get(key); ok {
		return u, false
	}
	u, ok := c.many.Get(key)
	return u, ok
}

func (c *caches) hasOrigin(key types.NamespacedName) bool {
	_, one := c.one.Seen(key)
	_, many := c.many.Seen(key)
	return one+many > 0
}

// versions returns the numbers that the caches give the present states of an object. up is its resourceVersion
// upstream, and down the text that versionAndStatus returns for it downstream; each is "" if the object is absent.
// versions decodes no object.
func (c *caches) versions(key, place types.NamespacedName) (now versions, up, down string) {
	var one, many string
	one, now.one = c.one.Seen(key)
	many, now.many = c.many.Seen(key)
	down, now.down = c.down.Seen(place)
	return now, cmp.Or(one, many), down
}

// awaitLists waits until each of the caches has its first list.
func awaitLists(ctx context.Context, all []*loop.Objects) error {
	for _, o := range all {
		select {
		case <-o.Synced():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
