// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// finalizers adds and removes the finalizer that keeps an origin until its downstream object is gone.
type finalizers struct{ *syncedType }

// add adds our finalizer to u, and updates the finalizers and the resourceVersion in u. It returns the resourceVersions
// that the cache shows before and after the write, or the zero value if u had changed meanwhile.
func (f finalizers) add(ctx context.Context, u *unstructured.Unstructured) (created, error) {
	version := u.GetResourceVersion()
	shows := created{before: version, up: version, uid: u.GetUID()}
	if f.syncer.holds(u) {
		return shows, nil
	}
	after, err := f.write(ctx, u, append(u.GetFinalizers(), f.syncer.finalizer))
	if isStale(err) || apierrors.IsNotFound(err) {
		shows = created{}
		after, err = f.addLive(ctx, u)
	}
	if err != nil {
		return created{}, wrap("add the finalizer", err)
	}
	u.SetFinalizers(after.GetFinalizers())
	u.SetResourceVersion(after.GetResourceVersion())
	if shows != (created{}) {
		shows.up = after.GetResourceVersion()
	}
	f.wrote(ctx, WriteFinalizer, loop.KeyOf(u))
	return shows, nil
}

// addLive adds our finalizer to the live state of u, which the cache does not show yet. It returns a Conflict if u is
// no longer selected, or changes before the server carries the write out. Otherwise a late write could add our
// finalizer at a time when u belongs to another cluster.
func (f finalizers) addLive(ctx context.Context, u *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	live, err := f.up.meta(u.GetNamespace()).Get(ctx, u.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && (live.UID != u.GetUID() || live.DeletionTimestamp != nil || !f.syncer.selects(live)):
		return nil, apierrors.NewConflict(f.kind.GVR.GroupResource(), u.GetName(), errors.New("it is no longer selected"))
	case err != nil:
		return nil, err
	case f.syncer.holds(live):
		return live, nil
	}
	return f.write(ctx, live, append(live.Finalizers, f.syncer.finalizer))
}

// write sets the finalizers of u. It returns a Conflict if u has changed upstream. The request is a merge patch with
// the resourceVersion of u. An apply would need no resourceVersion, but would cost the server much more.
func (f finalizers) write(ctx context.Context, u metav1.Object, finalizers []string) (*metav1.PartialObjectMetadata, error) {
	return f.up.merge(ctx, u, f.syncer.upManager, map[string]any{"resourceVersion": u.GetResourceVersion(), "finalizers": finalizers})
}

// drop removes our finalizer from u, and our annotation with the number of its pods that have no node. It records that
// u was withdrawn. It returns a Conflict if u has changed upstream. An absent u is no error.
func (f finalizers) drop(ctx context.Context, u metav1.Object) error {
	if !f.syncer.holds(u) {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(u.GetFinalizers()), func(name string) bool { return name == f.syncer.finalizer })
	f.withdrawn.add(u.GetUID())
	fields := map[string]any{"resourceVersion": u.GetResourceVersion(), "finalizers": rest}
	if name := v1alpha1.UnscheduledAnnotationPrefix + f.syncer.opts.Target; u.GetAnnotations()[name] != "" {
		fields["annotations"] = map[string]any{name: nil}
	}
	_, err := f.up.merge(ctx, u, f.syncer.upManager, fields)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		f.wrote(ctx, WriteRelease, types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()})
	}
	return wrap("remove the finalizer", err)
}
