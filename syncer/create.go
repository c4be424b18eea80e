// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// neverVersion is a resourceVersion that no object has. An apply with it creates the object, or fails with a Conflict
// if the object exists.
const neverVersion = "1"

// create creates the downstream object. It changes an existing object only if meet takes that object over. It returns
// the object after the write as after. If nothing was written, after is nil and again is the retry delay. changed is
// true if the desired object has changed since the last write that a server rejected, or that the syncer gave up
// because of a fight.
func (s specs) create(ctx context.Context, of ref, want *desired, changed bool) (after *metav1.PartialObjectMetadata, again time.Duration, err error) {
	if !changed && len(s.rivals.overCap(of, objectDeleted)) > 0 {
		return nil, 0, s.rivals.yield(ctx, of, []string{objectDeleted})
	}
	want.SetResourceVersion(neverVersion)
	after, err = s.apply(ctx, want, false)
	if isMissingNamespace(err, want.GetNamespace()) {
		if err := s.createNamespace(ctx, want.GetNamespace()); err != nil {
			return nil, 0, err
		}
		if s.syncer.dry { // the dry run has not created the namespace: an apply in it would fail
			s.wrote(ctx, WriteCreate, of.NamespacedName)
			return nil, 0, nil
		}
		after, err = s.apply(ctx, want, false)
	}
	switch {
	case err == nil:
		if s.records.hadDownstream(of) && !s.records.get(of).writes.spec.isDeletion() {
			s.rivals.countRewrite(of, objectDeleted)
		}
		s.wrote(ctx, WriteCreate, of.NamespacedName)
		return after, 0, nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		want.SetResourceVersion("")
		return s.meet(ctx, of, want)
	}
	return nil, 0, err
}

// meet decides about an object that has the namespace and name of want and is not in the cache. It takes the object
// over, or reports the object. It returns loop.ErrBehind if the object is ours. For the results see create.
func (s specs) meet(ctx context.Context, of ref, want *desired) (after *metav1.PartialObjectMetadata, again time.Duration, err error) {
	present, err := s.down.objects(want.GetNamespace()).Get(ctx, want.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, 0, err
	}
	want.SetUID(present.GetUID())
	uid := types.UID(want.GetAnnotations()[uidAnnotation])
	// The finalizer of the origin was added just before, so it does not prove that the object is ours.
	is := provenanceOf(present, manager, s.syncer.owner).relationTo(of.NamespacedName, uid, false)
	switch {
	case present.GetLabels()[ownerLabel] == s.syncer.owner:
		return nil, 0, loop.ErrBehind // ours, which the cache will show
	case is == copied, s.syncer.opts.Adopt == AdoptAlways:
	case s.syncer.opts.Adopt == AdoptEqual:
		equal, err := s.isEqual(ctx, present, want)
		if err != nil {
			return nil, 0, err
		}
		if !equal {
			return nil, s.reportForeign(ctx, of, present, want.hash), nil
		}
	case is == unknown:
		message := howToMark(loop.KeyOf(present), of.NamespacedName, uid, s.syncer.owner)
		return nil, s.reportBlocked(ctx, of, present, want.hash, ReasonCollision, message), nil
	default:
		return nil, s.reportForeign(ctx, of, present, want.hash), nil
	}
	after, err = s.apply(ctx, want, true)
	if err == nil {
		s.wrote(ctx, WriteUpdate, of.NamespacedName)
	}
	return after, 0, err
}

// isEqual reports whether applying want to present would change nothing but metadata.
func (s specs) isEqual(ctx context.Context, present *unstructured.Unstructured, want *desired) (bool, error) {
	data, err := want.body()
	if err != nil {
		return false, err
	}
	would, err := s.down.objects(want.GetNamespace()).Patch(ctx, want.GetName(), types.ApplyPatchType, data,
		metav1.PatchOptions{FieldManager: manager, DryRun: []string{metav1.DryRunAll}})
	if len(conflicts(err)) > 0 {
		return false, nil
	}
	return err == nil && sameContent(present, would), err
}

// sameContent reports whether two versions of an object are equal except for metadata and status.
func sameContent(a, b *unstructured.Unstructured) bool {
	content := func(obj *unstructured.Unstructured) string {
		content := map[string]any{}
		for field, value := range obj.Object {
			if field != "metadata" && field != "status" {
				content[field] = value
			}
		}
		data, _ := json.Marshal(content) // cannot fail: it was decoded from JSON
		return string(data)
	}
	return content(a) == content(b)
}
