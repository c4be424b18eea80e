// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// bornMark is before the name of an object that was born downstream, wherever it is remembered.
const bornMark = "^"

// bornKey is by what is remembered of an object that was born downstream and has key upstream: another may have it too.
func bornKey(key types.NamespacedName) types.NamespacedName {
	key.Name = bornMark + key.Name
	return key
}

// shown is the key of an object without our marks.
func shown(key types.NamespacedName) types.NamespacedName {
	key.Namespace = strings.TrimPrefix(key.Namespace, strayMark)
	key.Name = strings.TrimPrefix(key.Name, bornMark)
	return key
}

// watchBorn adds to the lane what it needs for objects that are born downstream.
func (l *lane) watchBorn() {
	s := l.syncer
	if s.opts.Upsync == nil || !s.opts.Upsync(l.kind.GVR.GroupResource()) {
		return
	}
	keep := loop.KeepManager(s.bornManager, s.statusManager)
	l.born = loop.NewObjects(s.down.Dynamic(), l.kind.GVR, loop.ObjectsOptions{
		Labels: v1alpha1.StateLabelPrefix + s.opts.Target + "=" + v1alpha1.StateUpsync, Packed: true, Flows: l.flows,
		Strip:   func(obj *unstructured.Unstructured) { loop.KeepManager()(obj); dropAnnotations(obj) },
		Changed: func(place types.NamespacedName) { l.queueBorn(place) },
	})
	l.raised = loop.NewObjects(s.up.Dynamic(), l.kind.GVR, loop.ObjectsOptions{
		Labels: ownerLabel + "=" + s.owner, Packed: true, Flows: l.flows,
		Strip:   func(obj *unstructured.Unstructured) { keep(obj); dropAnnotations(obj) },
		Changed: func(key types.NamespacedName) { s.add(l.queueKey(bornKey(key))) },
	})
}

// queueBorn adds what was born at a place downstream, unless nothing upstream belongs there.
func (l *lane) queueBorn(place types.NamespacedName) {
	if key, ok := l.originAt(place); ok {
		l.syncer.add(l.queueKey(bornKey(key)))
	}
}

// bornFresh returns why one of the copies is not up to date.
func (l *lane) bornFresh() error {
	if l.kind.Refused != "" {
		return wrap("downstream", l.born.Err())
	}
	return errors.Join(wrap("upstream", l.raised.Err()), wrap("downstream", l.born.Err()))
}

// mayRaise returns why nothing may be decided about what was born downstream.
func (l *lane) mayRaise() error { return errors.Join(l.syncer.lease.err(), l.bornFresh()) }

// raise brings an object that was born downstream up, where it has key, with its status.
func (l *lane) raise(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	if l.born == nil {
		return 0, nil // nothing that is born downstream is brought up
	}
	if err := l.missedBorn.stale(l.queueKey(bornKey(key)), l.mayRaise); err != nil {
		return l.syncer.putOff(err)
	}
	place, err := l.placeOf(key)
	if err != nil {
		return 0, nil // nothing of the upstream's belongs there
	}
	b, _ := l.born.Get(place)
	r, _ := l.raised.Get(key)
	var again time.Duration
	reason, why := l.refuses(key, place, b)
	switch {
	case reason != "" && (b != nil || r != nil):
		l.problem(ctx, bornKey(key), reason, why)
		return 0, nil
	case b == nil && r == nil:
		l.problem(ctx, bornKey(key), "", "")
		l.valve.settle(bornKey(key))
		return 0, nil
	case b == nil:
		again, err = l.removeRaised(ctx, key, place, r)
	case b.GetDeletionTimestamp() != nil:
		return 0, nil // until it is gone
	default:
		again, err = l.bringBornUp(ctx, key, b, r)
		if !l.has(bornKey(key), ReasonHeld) {
			l.valve.settle(bornKey(key))
		}
	}
	switch {
	case transient(err):
		return 0, loop.ErrBehind
	case apierrors.IsForbidden(err):
		l.problem(ctx, bornKey(key), ReasonForbidden, err.Error())
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), isSchemaError(err):
		l.problem(ctx, bornKey(key), ReasonRefused, err.Error())
		return retryRefused, nil
	}
	return again, wrap(fmt.Sprintf("bring up %s %s", l.name, key), err)
}

// raisedWish is what is to be upstream of b.
func (l *lane) raisedWish(key types.NamespacedName, b *unstructured.Unstructured) (*unstructured.Unstructured, string, error) {
	wish := &unstructured.Unstructured{Object: map[string]any{}}
	for field, v := range b.Object {
		if field != "metadata" && field != "status" {
			wish.Object[field] = v
		}
	}
	labels, annotations := synced(b.GetLabels(), l.syncer.opts.Label), synced(b.GetAnnotations(), l.syncer.opts.Label)
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	l.rules.apply(l.kind.GroupKind(), wish, func([]string) bool { return false })
	withoutNulls(wish.Object)
	labels[ownerLabel] = l.syncer.owner
	annotations[originAnnotation], annotations[uidAnnotation] = loop.KeyText(loop.KeyOf(b)), string(b.GetUID())
	wish.SetName(key.Name)
	wish.SetNamespace(key.Namespace)
	wish.SetLabels(labels)
	wish.SetAnnotations(annotations)
	data, err := json.Marshal(wish.Object)
	if err != nil {
		return nil, "", fmt.Errorf("encode: %w", err)
	}
	hash := digest(data)
	annotations[appliedAnnotation] = hash
	wish.SetAnnotations(annotations)
	return wish, hash, nil
}

// bringBornUp makes r, nil if there is none, what b is.
func (l *lane) bringBornUp(ctx context.Context, key types.NamespacedName, b, r *unstructured.Unstructured) (time.Duration, error) {
	if b.GetLabels()[ownerLabel] == l.syncer.owner {
		l.problem(ctx, bornKey(key), ReasonNotSyncable, "it is a copy of an object upstream")
		return 0, nil
	}
	if r != nil {
		is := provenanceOf(r, l.syncer.bornManager, l.syncer.owner).to(loop.KeyOf(b), b.GetUID(), true)
		switch {
		case is == preceded, is == misplaced, r.GetDeletionTimestamp() != nil:
			return l.deleteRaised(ctx, key, r) // another of the same name, which begins anew
		case is != copied:
			l.problem(ctx, bornKey(key), ReasonForeign, fmt.Sprintf("%s upstream has the label %s=%s, which another client wrote, and stays as it is: delete it, or remove the label",
				loop.KeyText(key), ownerLabel, l.syncer.owner))
			return 0, nil
		}
	}
	wish, hash, err := l.raisedWish(key, b)
	if err != nil {
		return 0, err
	}
	switch {
	case r == nil:
		wish.SetResourceVersion(neverVersion)
	case r.GetAnnotations()[appliedAnnotation] == hash && loop.Owns(r, wish, l.syncer.bornManager):
		l.problem(ctx, bornKey(key), "", "")
		return 0, l.bringBornStatusUp(ctx, key, b, r)
	case r.GetAnnotations()[appliedAnnotation] == hash:
		if len(l.tooOften(bornKey(key), changedUpstream)) > 0 {
			_ = l.yield(ctx, bornKey(key), []string{changedUpstream})
			return retryRefused, nil
		}
		l.again(bornKey(key), changedUpstream)
		fallthrough
	default:
		wish.SetUID(r.GetUID())
	}
	err = l.applyUp(ctx, wish, l.syncer.bornManager)
	if missesNamespace(err, key.Namespace) {
		if err := l.createNamespace(ctx, l.syncer.up, key.Namespace); err != nil {
			return 0, err
		}
		if !l.syncer.dry { // where nothing can be asked in a namespace that is not there
			err = l.applyUp(ctx, wish, l.syncer.bornManager)
		} else {
			err = nil
		}
	}
	if r == nil && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) {
		return l.meetUpstream(ctx, key)
	}
	if err != nil {
		return 0, err
	}
	l.problem(ctx, bornKey(key), "", "")
	l.wrote(ctx, WriteUpsync, key)
	return 0, nil
}

// meetUpstream is for an object upstream that has the place of one that was born downstream.
func (l *lane) meetUpstream(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	there, err := l.upMeta(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		return 0, err
	case there.Labels[ownerLabel] == l.syncer.owner:
		return 0, loop.ErrBehind // ours, which is about to be shown
	}
	l.problem(ctx, bornKey(key), ReasonForeign, "an object that this syncer did not make has this name upstream")
	return l.blockers.met(bornKey(key), l.upMeta(key.Namespace), there, markOf(there, false)), nil
}

// bringBornStatusUp makes the status of r that of b. What is observed of b's generations is then observed of those of r.
func (l *lane) bringBornStatusUp(ctx context.Context, key types.NamespacedName, b, r *unstructured.Unstructured) error {
	status, _ := b.Object["status"].(map[string]any)
	if len(status) == 0 {
		return nil
	}
	status = runtime.DeepCopyJSON(status)
	wish := bare(r)
	var subresources []string
	if l.kind.UpStatus {
		subresources = []string{"status"}
		translateGenerations(status, b.GetGeneration(), r.GetGeneration())
	} else {
		delete(status, "observedGeneration") // writing it makes another generation
	}
	wish.Object["status"] = status
	if !loop.Differs(r, wish, l.syncer.statusManager, subresources...) {
		return nil
	}
	wish.SetResourceVersion(r.GetResourceVersion()) // of custom resources' status, servers do not look at the UID
	if err := l.applyUp(ctx, wish, l.syncer.statusManager, subresources...); err != nil {
		return err
	}
	l.wrote(ctx, WriteStatus, key)
	return nil
}

func (l *lane) applyUp(ctx context.Context, wish *unstructured.Unstructured, manager string, subresources ...string) error {
	data, err := json.Marshal(wish.Object)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = l.upMeta(wish.GetNamespace()).Patch(ctx, wish.GetName(), types.ApplyPatchType, data, l.syncer.patchBy(manager), subresources...)
	return err
}

// removeRaised removes from the upstream what is not downstream any more, after it has asked there.
func (l *lane) removeRaised(ctx context.Context, key, place types.NamespacedName, r *unstructured.Unstructured) (time.Duration, error) {
	if from := provenanceOf(r, l.syncer.bornManager, l.syncer.owner); from.origin != place && !(from.signed && from.lostOrigin) {
		return 0, nil // the namespaces were mapped otherwise, or another client copied our label
	}
	b, err := l.downMeta(place.Namespace).Get(ctx, place.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !isMissingType(err):
		if err := l.syncer.sameDownstream(ctx); err != nil {
			return 0, err
		}
	case err != nil:
		return 0, err
	case b.Labels[v1alpha1.StateLabelPrefix+l.syncer.opts.Target] == v1alpha1.StateUpsync:
		return 0, loop.ErrBehind // the copy of the downstream is behind
	}
	return l.deleteRaised(ctx, key, r)
}

// deleteRaised deletes r and nothing else, unless too much would go.
func (l *lane) deleteRaised(ctx context.Context, key types.NamespacedName, r *unstructured.Unstructured) (time.Duration, error) {
	if r.GetDeletionTimestamp() != nil {
		return 0, nil
	}
	if !l.valve.pass(bornKey(key), l.raised.Len()) {
		l.problem(ctx, bornKey(key), ReasonHeld, "too many deletions upstream at once: they wait for a person to allow them")
		return 0, nil
	}
	uid, background := r.GetUID(), metav1.DeletePropagationBackground
	err := l.upMeta(key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background, DryRun: l.syncer.dryRun(),
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return 0, loop.ErrBehind // another than the copy shows
	case err != nil:
		return 0, wrap("delete upstream", err)
	}
	l.problem(ctx, bornKey(key), "", "")
	l.wrote(ctx, WriteDeleteUpstream, key)
	return 0, nil
}
