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
)

// end empties a namespace upstream that is being deleted of what is synced, then removes the one downstream, then lets the
// one upstream go, as far as the options say.
func (n *namespaceSync) end(ctx context.Context, key types.NamespacedName, place string, u, d *unstructured.Unstructured) (time.Duration, error) {
	if !n.opts.Finish && !n.lane.holds(u) {
		return 0, nil
	}
	live, err := n.upMeta("").Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return 0, loop.ErrBehind // the cache of the upstream is behind
	case err != nil:
		return 0, err
	case live.UID != u.GetUID() || live.DeletionTimestamp == nil:
		return 0, loop.ErrBehind
	}
	left, err := n.empty(ctx, key.Name, place)
	if err != nil || left {
		return lag, err
	}
	if n.opts.Delete && d != nil {
		again, kept, err := n.remove(ctx, key, d)
		if err != nil || !kept {
			return again, err
		}
	}
	if n.opts.Finish {
		rest, err := n.unsynced(ctx, key.Name)
		if err != nil {
			return 0, err
		}
		if rest != "" {
			n.problem(ctx, key, ReasonNamespace, "the namespace is being deleted upstream, and what is not synced is still in it, which others have to remove: "+rest)
			return n.retryAfter(key.Name), nil
		}
		if err := n.finish(ctx, live); err != nil {
			return 0, err
		}
	}
	n.problem(ctx, key, "", "")
	if live, err = n.upMeta("").Get(ctx, key.Name, metav1.GetOptions{}); err != nil {
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		return 0, err
	}
	return 0, n.release(ctx, live)
}

// lanes are those of the types that are synced.
func (n *namespaceSync) lanes() []*lane {
	n.syncer.mu.Lock()
	defer n.syncer.mu.Unlock()
	var all []*lane
	for _, l := range n.syncer.lanes {
		if l.kind.Namespaced && l.kind.Refused == "" {
			all = append(all, l)
		}
	}
	return all
}

// empty deletes what is synced in a namespace upstream, if it is to be finished here, and returns whether some of it is left
// on either side. Caches that are not fresh prove nothing.
func (n *namespaceSync) empty(ctx context.Context, name, place string) (left bool, err error) {
	lanes := n.lanes()
	if len(lanes) == 0 {
		return true, nil
	}
	for _, l := range lanes {
		if l.fresh() != nil {
			return true, nil
		}
		left = left || slices.ContainsFunc(l.down.Keys(), func(at types.NamespacedName) bool { return at.Namespace == place })
		for _, cache := range []*loop.Objects{l.one, l.many, l.raised} {
			if cache == nil {
				continue
			}
			for _, key := range cache.Keys() {
				if key.Namespace != name {
					continue
				}
				left = true
				obj, ok := cache.Get(key)
				if !ok || !n.opts.Finish || obj.GetDeletionTimestamp() != nil {
					continue
				}
				uid, background := obj.GetUID(), metav1.DeletePropagationBackground
				err := l.upMeta(name).Delete(ctx, key.Name, metav1.DeleteOptions{
					Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background, DryRun: n.syncer.dryRun(),
				})
				if err != nil && !apierrors.IsNotFound(err) {
					return true, wrap("delete "+l.name+" "+loop.KeyText(key), err)
				}
				l.wrote(ctx, WriteDeleteUpstream, key)
			}
		}
	}
	return left, nil
}

// removeOrphan removes a namespace downstream whose origin is gone, after it has asked the upstream.
func (n *namespaceSync) removeOrphan(ctx context.Context, key types.NamespacedName, d *unstructured.Unstructured) (time.Duration, error) {
	if !n.opts.Delete {
		return 0, nil
	}
	_, err := n.upMeta("").Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		return 0, loop.ErrBehind // the cache of the upstream is behind
	case !apierrors.IsNotFound(err) || isMissingType(err):
		return 0, err
	}
	if err := n.syncer.sameUpstream(ctx); err != nil {
		return 0, err
	}
	again, _, err := n.remove(ctx, key, d)
	return again, err
}

// remove deletes the namespace d downstream, if nothing of others is in it and not too much would go. kept is true if it stays
// and is not waited for.
func (n *namespaceSync) remove(ctx context.Context, key types.NamespacedName, d *unstructured.Unstructured) (again time.Duration, kept bool, err error) {
	if d.GetDeletionTimestamp() != nil {
		return lag, false, nil
	}
	theirs, err := n.others(ctx, d.GetName())
	if err != nil {
		return 0, false, err
	}
	if len(theirs) > 0 {
		n.problem(ctx, key, ReasonForeign, fmt.Sprintf("namespace %s downstream stays, because objects of others are in it: %s", d.GetName(), brief(theirs)))
		return n.retryAfter(key.Name), true, nil
	}
	if !n.valve.pass(key, n.down.Len()) {
		n.problem(ctx, key, ReasonHeld, "too many namespaces would be deleted at once: they wait for a person to allow them")
		return 0, false, nil
	}
	uid, background := d.GetUID(), metav1.DeletePropagationBackground
	err = n.downMeta("").Delete(ctx, d.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background, DryRun: n.syncer.dryRun(),
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return 0, false, loop.ErrBehind
	case err != nil:
		return 0, false, wrap("delete downstream", err)
	}
	n.problem(ctx, key, "", "")
	n.wrote(ctx, WriteDelete, key)
	return lag, false, nil
}

// made by controllers in each namespace.
var inEachNamespace = map[string]bool{
	"configmaps/kube-root-ca.crt": true, "configmaps/openshift-service-ca.crt": true, "serviceaccounts/default": true,
}

// others names objects of the synced types in a namespace downstream that this syncer did not make, but for those of
// controllers. An object of ours is named too.
func (n *namespaceSync) others(ctx context.Context, place string) (all []string, err error) {
	lanes := n.lanes()
	if len(lanes) == 0 {
		return nil, errors.New("the types that are synced are not known yet")
	}
	for _, l := range lanes {
		opts := metav1.ListOptions{Limit: 500}
		for {
			page, err := l.downMeta(place).List(ctx, opts)
			if err != nil {
				return nil, wrap("list "+l.name+" downstream", err)
			}
			for i := range page.Items {
				obj := &page.Items[i]
				if metav1.GetControllerOf(obj) == nil && !inEachNamespace[l.name+"/"+obj.Name] {
					all = append(all, l.name+" "+obj.Name)
				}
			}
			if opts.Continue = page.Continue; opts.Continue == "" {
				break
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// unsynced names a few objects that are in a namespace upstream, of any type; "": there are none.
func (n *namespaceSync) unsynced(ctx context.Context, name string) (string, error) {
	types, err := served(n.syncer.up.Discovery())
	if err != nil {
		return "", err
	}
	if len(types.failed) > 0 {
		return "", errors.New("discovery of some groups failed, whose objects may be in the namespace")
	}
	var all []string
	for _, gvr := range types.order {
		r := types.resources[gvr]
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
	return brief(all), nil
}

// finish removes the finalizer of the namespace controller from a namespace upstream in which nothing is left.
func (n *namespaceSync) finish(ctx context.Context, live *metav1.PartialObjectMetadata) error {
	client := n.syncer.up.Dynamic().Resource(namespaces)
	ns, err := client.Get(ctx, live.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if ns.GetUID() != live.UID || ns.GetDeletionTimestamp() == nil {
		return nil // another one
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
