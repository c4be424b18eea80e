// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// neverVersion is a resourceVersion that no object has: an apply with it creates, and is a Conflict with whatever is
// there.
const neverVersion = "1"

// bringDown makes the copy d, nil if there is none, what wish says. It returns true if nothing had to be done and none of
// our writes is on its way to the copies.
func (l *lane) bringDown(ctx context.Context, key types.NamespacedName, d *unstructured.Unstructured, w *wanted, up echo) (again time.Duration, done bool, err error) {
	version, hash := "", w.hash
	if d != nil {
		version = d.GetResourceVersion()
		if d.GetDeletionTimestamp() != nil {
			return 0, false, nil // made again when it is gone
		}
	}
	m := l.memo(key)
	if wait := m.down.awaited(hash, version); wait > 0 {
		return wait, false, nil
	}
	if d != nil {
		if wait := m.down.awaited(deletionOf(d), version); wait > 0 {
			return wait, false, nil // made anew when the copies show that it is gone
		}
	}
	if d != nil && d.GetAnnotations()[appliedAnnotation] == hash {
		owns := loop.Owns(d, w.Unstructured, manager)
		if owns && m != m.kept() {
			l.remember(key, func(m *memo) { *m = m.kept() })
		}
		if owns || m.down.made(hash, version) {
			return 0, true, nil
		}
	}
	if wait := m.refused.holds(hash, version); wait > 0 {
		return wait, false, nil
	}
	if l.syncer.lease.returning() {
		return lag, false, nil // what moved away is removed before anything is started
	}
	var after *metav1.PartialObjectMetadata
	made := echo{}
	if d == nil {
		after, again, err = l.create(ctx, key, w, m.refused.hash != "" && m.refused.hash != hash)
		if made = up; after == nil || l.syncer.opts.Conditions || slices.ContainsFunc(l.rules, againstTheStream) { // what is written when the copy is seen
			made = echo{}
		} else if up != (echo{}) {
			made.down, made.until = after.GetResourceVersion(), time.Now().Add(lag)
		}
	} else {
		w.SetUID(d.GetUID())
		// Without our hash another client has changed it too: each write of ours puts the hash there.
		drift := d.GetAnnotations()[appliedAnnotation] == hash || !loop.Applied(d, manager, "metadata", "annotations", appliedAnnotation)
		if err = l.contested(ctx, key, d, hash); err == nil {
			after, err = l.update(ctx, key, w, version, drift)
		}
		if err == nil && after != nil {
			l.written(part{NamespacedName: key}, hash, version, after.GetResourceVersion())
		}
	}
	switch {
	case errors.Is(err, errFight):
		l.remember(key, func(m *memo) { m.refused = refusal{hash: hash, state: anyState, until: time.Now().Add(retryRefused)} })
		return retryRefused, false, nil
	case d != nil && l.recreates(err):
		again, err = l.recreate(ctx, key, d)
		return again, false, err
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err), isSchemaError(err):
		l.problem(ctx, key, ReasonRefused, err.Error())
		l.remember(key, func(m *memo) { m.refused = refusal{hash: hash, state: version, until: time.Now().Add(retryRefused)} })
		return retryRefused, false, nil
	case err != nil || after == nil:
		return again, false, err
	}
	l.problem(ctx, key, "", "")
	l.remember(key, func(m *memo) {
		*m = memo{up: m.up, made: made, down: newPending(hash, version, after.GetResourceVersion())}
	})
	if l.syncer.dry {
		return 0, false, nil // what is there now is not what it would be
	}
	if after.GetResourceVersion() == version {
		return 0, true, nil // nothing was changed by it, and no event comes
	}
	return lag, false, nil
}

// recreates says whether err is the refusal of a change for which the copy is to be made anew.
func (l *lane) recreates(err error) bool {
	return apierrors.IsInvalid(err) && slices.ContainsFunc(causes(err), func(c metav1.StatusCause) bool {
		return slices.ContainsFunc(l.rules, func(r rule) bool { return r.recreate && r.covers(c.Field) })
	})
}

// isSchemaError says whether an apply failed because the server's schema does not have a field, or has another type for it:
// one of what is applied, or one of what is there from before the schema was changed.
func isSchemaError(err error) bool {
	return apierrors.IsInternalError(err) &&
		(strings.Contains(err.Error(), "failed to create typed patch object") || strings.Contains(err.Error(), "failed to create typed live object"))
}

// update applies wish to what is there, which has version. Fields that somebody else has changed are changed back, and that is
// told. drift is true if wish was applied before.
func (l *lane) update(ctx context.Context, key types.NamespacedName, w *wanted, version string, drift bool) (*metav1.PartialObjectMetadata, error) {
	if drift && len(l.tooOften(key, fieldsRemoved)) > 0 {
		return nil, l.yield(ctx, key, []string{fieldsRemoved + " by one of " + l.lastWriters(ctx, loop.KeyOf(w.Unstructured))})
	}
	after, err := l.apply(ctx, w, false)
	theirs := conflicts(err)
	if len(theirs) > 0 {
		if l.leavesToThem(theirs) {
			return nil, nil // the copy will show that it is theirs
		}
		if over := l.tooOften(key, theirs...); drift && len(over) > 0 {
			return nil, l.yield(ctx, key, over)
		}
		if after, err = l.apply(ctx, w, true); err == nil {
			l.syncer.opts.Observer.overruled(ctx, OverruledEvent{Resource: l.kind.GVR.GroupResource(), Object: key, Fields: theirs})
		}
	}
	if err != nil {
		return nil, err
	}
	switch {
	case after.GetResourceVersion() == version: // it was as it should be: who has changed what we own, such as a webhook, keeps on doing so
	case drift && len(theirs) == 0:
		l.again(key, fieldsRemoved)
	case drift:
		l.again(key, theirs...)
	}
	l.wrote(ctx, WriteUpdate, key)
	return after, nil
}

// conflicts returns the fields that others own, of an apply without force, as "field: conflict with manager".
func conflicts(err error) []string {
	var fields []string
	for _, cause := range causes(err) {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			fields = append(fields, cause.Field+": "+cause.Message)
		}
	}
	return fields
}

func causes(err error) []metav1.StatusCause {
	if d := details(err); d != nil {
		return d.Causes
	}
	return nil
}

// leavesToThem says whether a field in conflict belongs to whoever changes it downstream.
func (l *lane) leavesToThem(fields []string) bool {
	for _, r := range l.rules {
		for _, f := range fields {
			if r.owner == FirstWriter && strings.HasPrefix(f, "."+strings.Join(r.names(), ".")+": ") {
				return true
			}
		}
	}
	return false
}

// create makes the copy, but never out of something that is there already. after is nil if there is nothing to wait for.
// changed is true if it is another than the one that was left to somebody.
func (l *lane) create(ctx context.Context, key types.NamespacedName, w *wanted, changed bool) (after *metav1.PartialObjectMetadata, again time.Duration, err error) {
	if !changed && len(l.tooOften(key, copyDeleted)) > 0 {
		return nil, 0, l.yield(ctx, key, []string{copyDeleted})
	}
	w.SetResourceVersion(neverVersion)
	after, err = l.apply(ctx, w, false)
	if missesNamespace(err, w.GetNamespace()) {
		if err := l.createNamespaceBelow(ctx, w.GetNamespace()); err != nil {
			return nil, 0, err
		}
		if l.syncer.dry { // the namespace is not there, so that nothing can be asked in it
			l.wrote(ctx, WriteCreate, key)
			return nil, 0, nil
		}
		after, err = l.apply(ctx, w, false)
	}
	switch {
	case err == nil:
		if l.hadCopy(key) && !l.memo(key).down.deletes() {
			l.again(key, copyDeleted)
		}
		l.wrote(ctx, WriteCreate, key)
		return after, 0, nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		w.SetResourceVersion("")
		return l.meet(ctx, key, w)
	default:
		return nil, 0, err
	}
}

// meet is for an object that has the place of the copy and that the copies do not show.
func (l *lane) meet(ctx context.Context, key types.NamespacedName, w *wanted) (after *metav1.PartialObjectMetadata, again time.Duration, err error) {
	there, err := l.downClient(w.GetNamespace()).Get(ctx, w.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, 0, err
	}
	w.SetUID(there.GetUID())
	uid := types.UID(w.GetAnnotations()[uidAnnotation])
	// The finalizer upstream was just added, so it is no evidence.
	is := provenanceOf(there, manager, l.syncer.owner).to(key, uid, false)
	switch {
	case there.GetLabels()[ownerLabel] == l.syncer.owner:
		return nil, 0, loop.ErrBehind // a copy of ours that is about to be shown
	case is == copied, l.syncer.opts.Adopt == AdoptAlways:
	case l.syncer.opts.Adopt == AdoptEqual:
		would, err := l.try(ctx, w)
		if err != nil && len(conflicts(err)) == 0 {
			return nil, 0, err
		}
		if err != nil || !sameContent(there, would) {
			return nil, l.foreign(ctx, key, there, w.hash), nil
		}
	case is == unknown:
		return nil, l.blockedFor(ctx, key, there, w.hash, ReasonCollision, howToMark(loop.KeyOf(there), key, uid, l.syncer.owner)), nil
	default:
		return nil, l.foreign(ctx, key, there, w.hash), nil
	}
	after, err = l.apply(ctx, w, true)
	if err == nil {
		l.wrote(ctx, WriteUpdate, key)
	}
	return after, 0, err
}

// foreign reports what has the place of our object and returns when to try again.
func (l *lane) foreign(ctx context.Context, key types.NamespacedName, there *unstructured.Unstructured, hash string) time.Duration {
	message := "an object that this syncer did not make has this name downstream"
	if owner := there.GetLabels()[ownerLabel]; owner != "" {
		message += fmt.Sprintf(" (%s=%s)", ownerLabel, owner)
		l.syncer.noticeAnother(ctx, fmt.Sprintf("%s %s downstream belongs to the syncer with %s=%s", l.name, loop.KeyOf(there), ownerLabel, owner))
	}
	return l.blockedFor(ctx, key, there, hash, ReasonForeign, message)
}

// sameContent says whether two versions of an object differ in no more than metadata.
func sameContent(a, b *unstructured.Unstructured) bool {
	bare := func(obj *unstructured.Unstructured) string {
		content := map[string]any{}
		for field, value := range obj.Object {
			if field != "metadata" && field != "status" {
				content[field] = value
			}
		}
		data, _ := json.Marshal(content) // it came as JSON
		return string(data)
	}
	return bare(a) == bare(b)
}

// apply sends w. It does not wait for the copy to show it.
func (l *lane) apply(ctx context.Context, w *wanted, force bool) (*metav1.PartialObjectMetadata, error) {
	data, err := w.body()
	if err != nil {
		return nil, err
	}
	return l.downMeta(w.GetNamespace()).Patch(ctx, w.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: manager, Force: &force, DryRun: l.syncer.dryRun()})
}

// try says what an apply without force would make.
func (l *lane) try(ctx context.Context, w *wanted) (*unstructured.Unstructured, error) {
	data, err := w.body()
	if err != nil {
		return nil, err
	}
	return l.downClient(w.GetNamespace()).Patch(ctx, w.GetName(), types.ApplyPatchType, data,
		metav1.PatchOptions{FieldManager: manager, DryRun: []string{metav1.DryRunAll}})
}

func missesNamespace(err error, namespace string) bool {
	d := details(err)
	return namespace != "" && apierrors.IsNotFound(err) && d != nil && d.Kind == "namespaces" && d.Name == namespace
}

// details returns what an API server said about its refusal; nil if nothing.
func details(err error) *metav1.StatusDetails {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Details
	}
	return nil
}

// createNamespaceBelow makes a namespace downstream, with what passes from the one upstream.
func (l *lane) createNamespaceBelow(ctx context.Context, name string) error {
	n := l.syncer.namespaces()
	if n == nil {
		return l.createNamespace(ctx, l.syncer.down, name)
	}
	err := n.create(ctx, name)
	switch {
	case err == nil:
		l.wrote(ctx, WriteNamespace, types.NamespacedName{Name: name})
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return nil
	}
	return wrap("create namespace "+name, err)
}

// createNamespace makes a namespace on one side. One that is there already is used as it is.
func (l *lane) createNamespace(ctx context.Context, on region.API, name string) error {
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": name, "labels": map[string]any{ownerLabel: l.syncer.owner},
	}}}
	_, err := on.Dynamic().Resource(namespaces).Create(ctx, ns, metav1.CreateOptions{FieldManager: manager, DryRun: l.syncer.dryRun()})
	if err == nil {
		l.wrote(ctx, WriteNamespace, types.NamespacedName{Name: name})
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return wrap("create namespace "+name, err)
}
