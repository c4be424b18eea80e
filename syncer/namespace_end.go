// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

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

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
)

// namespaceEnd deletes namespaces on both sides, as NamespaceOptions ask.
type namespaceEnd struct {
	*syncedType
	sync *namespaceSync
}

// end handles an upstream namespace that is being deleted. As far as the options ask for it, end first deletes the
// synced objects in the namespace, then the downstream namespace, and then removes the finalizer of the namespace
// controller upstream. At last it removes our finalizer.
func (n namespaceEnd) end(ctx context.Context, key types.NamespacedName, place string, u, d *unstructured.Unstructured) (time.Duration, error) {
	if !n.sync.opts.Finish && !n.syncer.holds(u) {
		return 0, nil
	}
	live, err := n.ending(ctx, key, u)
	if err != nil {
		return 0, err
	}
	left, err := n.empty(ctx, key.Name, place)
	if err != nil || left {
		return cacheDelay, err
	}
	if n.sync.opts.Delete && d != nil {
		again, kept, err := n.remove(ctx, key, d)
		if err != nil || !kept {
			return again, err
		}
	}
	if n.sync.opts.Finish {
		rest, err := n.unsynced(ctx, key.Name)
		if err != nil {
			return 0, err
		}
		if rest != "" {
			n.report(ctx, originRef(key), ReasonNamespace, "the namespace is being deleted upstream, and still contains objects that are not synced: others must remove them: "+rest)
			return n.sync.retryAfter(key.Name), nil
		}
		if err := n.finish(ctx, live); err != nil {
			return 0, err
		}
	}
	n.report(ctx, originRef(key), "", "")
	return 0, n.release(ctx, key)
}

// ending reads the upstream namespace of u live, which is being deleted. It returns loop.ErrBehind if the namespace is
// gone, was replaced, or is not being deleted: then u is out of date.
func (n namespaceEnd) ending(
	ctx context.Context, key types.NamespacedName, u *unstructured.Unstructured,
) (*metav1.PartialObjectMetadata, error) {
	live, err := n.up.get(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case live == nil || live.UID != u.GetUID() || live.DeletionTimestamp == nil:
		return nil, loop.ErrBehind // the upstream cache is stale
	}
	return live, nil
}

// release removes our finalizer from the present version of an upstream namespace.
func (n namespaceEnd) release(ctx context.Context, key types.NamespacedName) error {
	live, err := n.up.get(ctx, key)
	if err != nil || live == nil {
		return err
	}
	return n.sync.release(ctx, live)
}

// types returns the controllers of the namespaced types that are synced.
func (n namespaceEnd) types() []*controller {
	return slices.DeleteFunc(n.syncer.synced(), func(c *controller) bool { return !c.kind.Namespaced })
}

// empty deletes the synced objects in an upstream namespace if Finish is set, and reports whether some are left on
// either side. It also returns true while a cache is stale or the synced types are unknown.
func (n namespaceEnd) empty(ctx context.Context, name, place string) (left bool, err error) {
	all := n.types()
	if len(all) == 0 {
		return true, nil
	}
	for _, c := range all {
		if c.caches.staleErr() != nil {
			return true, nil
		}
		left = left || slices.ContainsFunc(c.caches.down.Keys(), func(at types.NamespacedName) bool { return at.Namespace == place })
		for _, cache := range []*loop.Objects{c.caches.one, c.caches.many, c.caches.raised} {
			some, err := n.emptyOf(ctx, c, cache, name)
			if err != nil {
				return true, err
			}
			left = left || some
		}
	}
	return left, nil
}

// emptyOf does the same as the method empty, for the objects of one cache, which may be nil.
func (n namespaceEnd) emptyOf(ctx context.Context, c *controller, cache *loop.Objects, name string) (left bool, err error) {
	if cache == nil {
		return false, nil
	}
	for _, key := range cache.Keys() {
		if key.Namespace != name {
			continue
		}
		left = true
		obj, ok := cache.Get(key)
		if !ok || !n.sync.opts.Finish || obj.GetDeletionTimestamp() != nil {
			continue
		}
		if err := c.up.remove(ctx, obj); err != nil && !apierrors.IsNotFound(err) {
			return true, wrap("delete "+c.name+" "+loop.KeyText(key), err)
		}
		c.wrote(ctx, WriteDeleteUpstream, key)
	}
	return left, nil
}

// removeOrphan deletes a downstream namespace whose origin is gone, after a live read upstream.
func (n namespaceEnd) removeOrphan(ctx context.Context, key types.NamespacedName, d *unstructured.Unstructured) (time.Duration, error) {
	if !n.sync.opts.Delete {
		return 0, nil
	}
	switch u, err := n.up.get(ctx, key); {
	case err != nil:
		return 0, err
	case u != nil:
		return 0, loop.ErrBehind // the upstream cache is stale
	}
	if err := n.syncer.sameUpstream(ctx); err != nil {
		return 0, err
	}
	again, _, err := n.remove(ctx, key, d)
	return again, err
}

// remove deletes the downstream namespace d, unless it contains objects of other clients or the delete cap holds
// the deletion. kept is true if d stays because of such objects: then the upstream namespace ends without waiting
// for d.
func (n namespaceEnd) remove(ctx context.Context, key types.NamespacedName, d *unstructured.Unstructured) (again time.Duration, kept bool, err error) {
	if d.GetDeletionTimestamp() != nil {
		return cacheDelay, false, nil
	}
	theirs, err := n.occupants(ctx, d.GetName())
	if err != nil {
		return 0, false, err
	}
	if len(theirs) > 0 {
		n.report(ctx, originRef(key), ReasonForeign, fmt.Sprintf("namespace %s downstream stays, because objects of others are in it: %s", d.GetName(), synctarget.Brief(theirs)))
		return n.sync.retryAfter(key.Name), true, nil
	}
	if !n.valve.admit(originRef(key), n.sync.downstream.Len()) {
		n.report(ctx, originRef(key), ReasonHeld, "too many namespaces would be deleted at once: they wait for a person to allow them")
		return 0, false, nil
	}
	switch err = n.down.remove(ctx, d); {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return 0, false, loop.ErrBehind
	case err != nil:
		return 0, false, wrap("delete downstream", err)
	}
	n.report(ctx, originRef(key), "", "")
	n.wrote(ctx, WriteDelete, key)
	return cacheDelay, false, nil
}

// inEachNamespace are objects that controllers create in each namespace.
var inEachNamespace = map[string]bool{
	"configmaps/kube-root-ca.crt": true, "configmaps/openshift-service-ca.crt": true, "serviceaccounts/default": true,
}

// occupants names the objects of the synced types in a downstream namespace, except those that controllers made. If an
// object of ours is left in the namespace, occupants names it too.
func (n namespaceEnd) occupants(ctx context.Context, place string) (all []string, err error) {
	synced := n.types()
	if len(synced) == 0 {
		return nil, errors.New("the types that are synced are not known yet")
	}
	for _, c := range synced {
		err := c.down.each(ctx, place, "", func(obj *metav1.PartialObjectMetadata) error {
			if metav1.GetControllerOf(obj) == nil && !inEachNamespace[c.name+"/"+obj.Name] {
				all = append(all, c.name+" "+obj.Name)
			}
			return nil
		})
		if err != nil {
			return nil, wrap("list "+c.name+" downstream", err)
		}
	}
	slices.Sort(all)
	return all, nil
}

// unsynced names a few objects of any type in an upstream namespace; "" if the namespace is empty.
func (n namespaceEnd) unsynced(ctx context.Context, name string) (string, error) {
	surface, err := served(n.syncer.up.Discovery())
	if err != nil {
		return "", err
	}
	if len(surface.failed) > 0 {
		return "", errors.New("discovery of some groups failed, whose objects may be in the namespace")
	}
	var all []string
	for _, gvr := range surface.order {
		r := surface.resources[gvr]
		if !r.Namespaced || !hasAll(r.Verbs, []string{"list", "delete"}) {
			continue
		}
		page, err := n.syncer.up.Metadata().Resource(gvr).Namespace(name).List(ctx, metav1.ListOptions{Limit: 3})
		if err != nil {
			return "", wrap("list "+gvr.GroupResource().String()+" upstream", err)
		}
		for i := range page.Items {
			if text := gvr.GroupResource().String() + " " + page.Items[i].Name; !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return synctarget.Brief(all), nil
}

// finish removes the finalizer of the namespace controller from an empty upstream namespace.
func (n namespaceEnd) finish(ctx context.Context, live *metav1.PartialObjectMetadata) error {
	client := n.syncer.up.Dynamic().Resource(namespaces)
	ns, err := client.Get(ctx, live.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if ns.GetUID() != live.UID || ns.GetDeletionTimestamp() == nil {
		return nil // another namespace has the name now
	}
	finalizers, _, _ := unstructured.NestedStringSlice(ns.Object, "spec", "finalizers")
	rest := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == "kubernetes" })
	if len(rest) == len(finalizers) {
		return nil
	}
	if err := unstructured.SetNestedStringSlice(ns.Object, rest, "spec", "finalizers"); err != nil {
		return err
	}
	_, err = client.Update(ctx, ns, metav1.UpdateOptions{FieldManager: n.syncer.upManager, DryRun: n.syncer.dryRun()}, "finalize")
	if err != nil && !apierrors.IsNotFound(err) {
		return wrap("finalize", err)
	}
	n.wrote(ctx, WriteRelease, types.NamespacedName{Name: live.Name})
	return nil
}
