// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// upsync brings up the objects that were born downstream, with their status. The upstream object that it creates
// for a born object is called the raised object.
type upsync struct {
	*syncedType
	rivals rivals
}

// bornState is the state of one object in the caches. born is the object downstream, and raised the object upstream;
// nil if absent.
type bornState struct {
	ref
	place        types.NamespacedName
	born, raised *unstructured.Unstructured
}

// bornAction is the decision about one object that was born downstream.
type bornAction int

const (
	bornForget  bornAction = iota // neither side has the object
	bornRemove                    // the born object is gone or has lost its label: delete the raised object
	bornWait                      // the born object is being deleted downstream
	bornReport                    // the born object is the downstream object of an upstream object
	bornReplace                   // the raised object was made for another born object, or is being deleted
	bornForeign                   // the raised object belongs to another client
	bornSync
)

// action returns the decision about one object. It is pure.
func (s upsync) action(o bornState) bornAction {
	switch {
	case o.born == nil && o.raised == nil:
		return bornForget
	case o.born == nil:
		return bornRemove
	case o.born.GetDeletionTimestamp() != nil:
		return bornWait
	case o.born.GetLabels()[ownerLabel] == s.syncer.owner:
		return bornReport
	case o.raised == nil:
		return bornSync
	}
	switch is := provenanceOf(o.raised, s.syncer.bornManager, s.syncer.owner).relationTo(loop.KeyOf(o.born), o.born.GetUID(), true); {
	case is == preceded, is == misplaced, o.raised.GetDeletionTimestamp() != nil:
		return bornReplace
	case is != copied:
		return bornForeign
	}
	return bornSync
}

// reconcile brings one object up, and returns the time after which to requeue it; 0: only after an event.
func (s upsync) reconcile(ctx context.Context, of ref) (time.Duration, error) {
	place, err := s.placeOf(of.NamespacedName)
	if err != nil {
		return 0, nil // no downstream namespace belongs to this key
	}
	o := bornState{ref: of, place: place}
	o.born, _ = s.caches.born.Get(place)
	o.raised, _ = s.caches.raised.Get(of.NamespacedName)
	if reason, why := s.refuses(of.NamespacedName, place, o.born); reason != "" && (o.born != nil || o.raised != nil) {
		s.report(ctx, of, reason, why)
		return 0, nil
	}
	again, err := s.act(ctx, o)
	switch {
	case isStale(err):
		return 0, loop.ErrBehind
	case errors.Is(err, errFight):
		return retryRejected, nil
	case apierrors.IsForbidden(err):
		s.report(ctx, of, ReasonForbidden, err.Error())
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), isSchemaError(err):
		s.report(ctx, of, ReasonRefused, err.Error())
		return retryRejected, nil
	}
	return again, wrap(fmt.Sprintf("bring up %s %s", s.name, of.NamespacedName), err)
}

func (s upsync) act(ctx context.Context, o bornState) (again time.Duration, err error) {
	switch s.action(o) {
	case bornForget:
		s.report(ctx, o.ref, "", "")
		s.valve.withdraw(o.ref)
		return 0, nil
	case bornRemove:
		return 0, s.removeRaised(ctx, o)
	case bornWait:
		return 0, nil
	case bornReport:
		s.report(ctx, o.ref, ReasonNotSyncable, "it is a copy of an object upstream")
	case bornReplace:
		err = s.deleteRaised(ctx, o) // the next reconcile creates the raised object of the present born object
	case bornForeign:
		s.report(ctx, o.ref, ReasonForeign, fmt.Sprintf("%s upstream has the label %s=%s, which another client wrote, and stays as it is: delete it, or remove the label",
			loop.KeyText(o.NamespacedName), ownerLabel, s.syncer.owner))
	case bornSync:
		again, err = s.sync(ctx, o)
	}
	s.settleValve(o.ref)
	return again, err
}

// desired returns the upstream object that o.born must have, which is the desired raised object, and a hash of
// its content.
func (s upsync) desired(o bornState) (*unstructured.Unstructured, string, error) {
	want := &unstructured.Unstructured{Object: map[string]any{}}
	for field, v := range o.born.Object {
		if field != "metadata" && field != "status" {
			want.Object[field] = v
		}
	}
	labels := orEmpty(synced(o.born.GetLabels(), s.syncer.opts.Label))
	annotations := orEmpty(synced(o.born.GetAnnotations(), s.syncer.opts.Label))
	s.rules.apply(s.kind.GroupKind(), want, func(rule) bool { return false })
	withoutNulls(want.Object)
	labels[ownerLabel] = s.syncer.owner
	annotations[originAnnotation], annotations[uidAnnotation] = loop.KeyText(loop.KeyOf(o.born)), string(o.born.GetUID())
	want.SetName(o.Name)
	want.SetNamespace(o.Namespace)
	want.SetLabels(labels)
	want.SetAnnotations(annotations)
	data, err := json.Marshal(want.Object)
	if err != nil {
		return nil, "", fmt.Errorf("encode: %w", err)
	}
	hash := synctarget.Digest(data)
	annotations[appliedAnnotation] = hash
	want.SetAnnotations(annotations)
	return want, hash, nil
}

// sync writes the raised object, the upstream object that stands for o.born. If the raised object is already as
// desired, sync writes only its status.
func (s upsync) sync(ctx context.Context, o bornState) (time.Duration, error) {
	want, hash, err := s.desired(o)
	if err != nil {
		return 0, err
	}
	if o.raised == nil {
		want.SetResourceVersion(neverVersion)
	} else {
		want.SetUID(o.raised.GetUID())
		if o.raised.GetAnnotations()[appliedAnnotation] == hash {
			if loop.Owns(o.raised, want, s.syncer.bornManager) {
				s.report(ctx, o.ref, "", "")
				return 0, s.bringStatus(ctx, o)
			}
			if len(s.rivals.overCap(o.ref, changedUpstream)) > 0 {
				return 0, s.rivals.yield(ctx, o.ref, []string{changedUpstream})
			}
			s.rivals.countRewrite(o.ref, changedUpstream)
		}
	}
	_, err = s.up.apply(ctx, want, s.syncer.bornManager, true)
	if isMissingNamespace(err, o.Namespace) {
		var created bool
		created, err = s.up.createNamespace(ctx, o.Namespace, s.syncer.owner)
		if err != nil {
			return 0, err
		}
		if created {
			s.wrote(ctx, WriteNamespace, types.NamespacedName{Name: o.Namespace})
		}
		if !s.syncer.dry { // a dry run has not created the namespace: an apply in it would fail
			_, err = s.up.apply(ctx, want, s.syncer.bornManager, true)
		}
	}
	if o.raised == nil && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) {
		return s.meet(ctx, o)
	}
	if err != nil {
		return 0, err
	}
	s.report(ctx, o.ref, "", "")
	s.wrote(ctx, WriteUpsync, o.NamespacedName)
	return 0, nil
}

// meet is called if the upstream object for an object born downstream cannot be created, because an object that the
// cache does not show has its name. If this syncer created that object, meet returns loop.ErrBehind: the cache will show
// it. Otherwise meet reports the conflict and returns the retry delay.
func (s upsync) meet(ctx context.Context, o bornState) (time.Duration, error) {
	present, err := s.up.meta(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		return 0, err
	case present.Labels[ownerLabel] == s.syncer.owner:
		return 0, loop.ErrBehind // ours, which the cache will show
	}
	s.report(ctx, o.ref, ReasonForeign, "an object that this syncer did not make has this name upstream")
	return s.blockers.recordBlocker(o.ref, s.up.meta(o.Namespace), present, markOf(present, false)), nil
}

// bringStatus writes the status of the downstream object o.born to the upstream object o.raised, and translates the
// generations in it to those of o.raised.
func (s upsync) bringStatus(ctx context.Context, o bornState) error {
	status, _ := o.born.Object["status"].(map[string]any)
	if len(status) == 0 {
		return nil
	}
	status = runtime.DeepCopyJSON(status)
	want := loop.Identity(o.raised)
	var subresources []string
	if s.kind.UpStatus {
		subresources = []string{"status"}
		translateGenerations(status, o.born.GetGeneration(), o.raised.GetGeneration())
	} else {
		delete(status, "observedGeneration") // the write increments the generation
	}
	want.Object["status"] = status
	if !loop.Differs(o.raised, want, s.syncer.statusManager, subresources...) {
		return nil
	}
	want.SetResourceVersion(o.raised.GetResourceVersion()) // in the status of custom resources, servers ignore the UID
	if _, err := s.up.apply(ctx, want, s.syncer.statusManager, true, subresources...); err != nil {
		return err
	}
	s.wrote(ctx, WriteStatus, o.NamespacedName)
	return nil
}

// removeRaised deletes the upstream object o.raised if a live read downstream shows that the object it was created
// for is gone, or has lost its label.
func (s upsync) removeRaised(ctx context.Context, o bornState) error {
	if from := provenanceOf(o.raised, s.syncer.bornManager, s.syncer.owner); from.origin != o.place && !(from.signed && from.lostOrigin) {
		return nil // the namespaces were mapped otherwise, or another client copied our label
	}
	born, err := s.down.get(ctx, o.place)
	switch {
	case err != nil:
		return err
	case born == nil:
		if err := s.syncer.sameDownstream(ctx); err != nil {
			return err
		}
	case born.Labels[v1alpha1.StateLabelPrefix+s.syncer.opts.Target] == v1alpha1.StateUpsync:
		return loop.ErrBehind // the downstream cache is stale
	}
	return s.deleteRaised(ctx, o)
}

// deleteRaised deletes the upstream object o.raised, but not a later object of its name. If the delete cap holds the
// deletion, deleteRaised reports ReasonHeld and deletes nothing.
func (s upsync) deleteRaised(ctx context.Context, o bornState) error {
	if o.raised.GetDeletionTimestamp() != nil {
		return nil
	}
	if !s.valve.admit(o.ref, s.caches.raised.Len()) {
		s.report(ctx, o.ref, ReasonHeld, "too many deletions upstream at once: they wait for a person to allow them")
		return nil
	}
	switch err := s.up.remove(ctx, o.raised); {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return loop.ErrBehind // the object in the cache is gone or was replaced
	case err != nil:
		return wrap("delete upstream", err)
	}
	s.report(ctx, o.ref, "", "")
	s.wrote(ctx, WriteDeleteUpstream, o.NamespacedName)
	return nil
}
