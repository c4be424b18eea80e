// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// maxMessage bounds the message of a condition, in bytes.
const maxMessage = 1024

// condition is the condition of an upstream object that reports whether the object is synced.
type condition struct {
	Status             metav1.ConditionStatus `json:"status"`
	Reason             string                 `json:"reason"`
	Message            string                 `json:"message"`
	LastTransitionTime string                 `json:"lastTransitionTime"`
}

// same reports whether the two conditions are equal except for their times.
func (c condition) same(other condition) bool {
	c.LastTransitionTime = other.LastTransitionTime
	return c == other
}

// conditions writes the condition of objects upstream, see Options.Conditions.
type conditions struct{ *syncedType }

// next returns the desired condition of an object. done is true if its downstream object is in place. ok is false if
// the condition is unknown: the object has no problem, and its downstream object is not in place yet.
func (c conditions) next(problem Problem, done bool) (next condition, ok bool) {
	if problem.Reason != "" {
		return condition{Status: metav1.ConditionFalse, Reason: string(problem.Reason), Message: loop.Shorten(problem.Message, maxMessage)}, true
	}
	return condition{Status: metav1.ConditionTrue, Reason: "Synced"}, done
}

// show writes the condition upstream if it is known and differs from the present one, and updates the resourceVersion
// of o.u. done is true if the downstream object is in place.
func (c conditions) show(ctx context.Context, o observed, done bool) error {
	if !c.syncer.opts.Conditions {
		return nil
	}
	next, known := c.next(c.records.get(o.ref).problem, done)
	if !known {
		return nil
	}
	name := v1alpha1.SyncedCondition
	if o.shared {
		name += "-" + c.syncer.opts.Target
	}
	_, annotated := o.u.GetAnnotations()[v1alpha1.SyncedAnnotationPrefix+c.syncer.opts.Target]
	inStatus := c.kind.UpStatus && !c.records.withoutConditions() && !annotated
	present := c.read(o.u, name, inStatus)
	if next.same(present) {
		return nil
	}
	next.LastTransitionTime = present.LastTransitionTime
	if next.Status != present.Status {
		next.LastTransitionTime = time.Now().UTC().Format(time.RFC3339)
	}
	if !inStatus {
		return c.annotate(ctx, o.u, next)
	}
	obj := loop.Identity(o.u)
	obj.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": name, "status": string(next.Status), "reason": next.Reason, "message": next.Message, "lastTransitionTime": next.LastTransitionTime,
	}}}
	obj.SetResourceVersion(o.u.GetResourceVersion()) // in the status of custom resources, servers ignore the UID
	err := c.write(ctx, o.u, obj, false, "status")
	if isStale(err) || err == nil {
		return err
	}
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) || isSchemaError(err) {
		// The type has no conditions, has conditions of another form, or has an atomic list of conditions: use the
		// annotation.
		c.records.dropConditions()
		return c.annotate(ctx, o.u, next)
	}
	return err
}

// read returns the present condition of u; zero if it has none.
func (c conditions) read(u *unstructured.Unstructured, name string, inStatus bool) (present condition) {
	if !inStatus {
		_ = json.Unmarshal([]byte(u.GetAnnotations()[v1alpha1.SyncedAnnotationPrefix+c.syncer.opts.Target]), &present) // an invalid one is overwritten
		return present
	}
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, v := range all {
		fields, _ := v.(map[string]any)
		text := func(name string) string { s, _ := fields[name].(string); return s }
		if text("type") == name {
			return condition{metav1.ConditionStatus(text("status")), text("reason"), text("message"), text("lastTransitionTime")}
		}
	}
	return present
}

// annotate writes the condition as an annotation, for types whose status has no place for it.
func (c conditions) annotate(ctx context.Context, u *unstructured.Unstructured, next condition) error {
	data, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode condition: %w", err)
	}
	obj := loop.Identity(u)
	obj.SetAnnotations(map[string]string{v1alpha1.SyncedAnnotationPrefix + c.syncer.opts.Target: string(data)})
	return c.write(ctx, u, obj, true)
}

func (c conditions) write(ctx context.Context, u, obj *unstructured.Unstructured, force bool, subresources ...string) error {
	after, err := c.up.apply(ctx, obj, c.syncer.conditionManager, force, subresources...)
	if err != nil {
		return wrap("write condition", err)
	}
	u.SetResourceVersion(after.GetResourceVersion())
	c.wrote(ctx, WriteCondition, loop.KeyOf(u))
	return nil
}

// clear removes our condition from u, and updates the resourceVersion of u.
func (c conditions) clear(ctx context.Context, u *metav1.PartialObjectMetadata) error {
	for _, subresource := range []string{"status", ""} {
		if !slices.ContainsFunc(u.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == c.syncer.conditionManager && e.Subresource == subresource
		}) {
			continue
		}
		nothing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": c.kind.GVR.GroupVersion().String(), "kind": c.kind.Kind}}
		nothing.SetNamespace(u.Namespace)
		nothing.SetName(u.Name)
		nothing.SetUID(u.UID)
		nothing.SetResourceVersion(u.ResourceVersion)
		var subresources []string
		if subresource != "" {
			subresources = []string{subresource}
		}
		after, err := c.up.apply(ctx, nothing, c.syncer.conditionManager, true, subresources...)
		if err != nil {
			return wrap("remove condition", err)
		}
		u.ResourceVersion = after.ResourceVersion
		c.wrote(ctx, WriteCondition, loop.KeyOf(nothing))
	}
	return nil
}
