// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// fields returns those fields of obj that a rule in of names, as far as such returns true for the rule. of has all
// rules of the type.
func fields(obj *unstructured.Unstructured, such func(rule) bool, of rules) map[string]any {
	found := map[string]any{}
	for _, r := range of {
		if !such(r) {
			continue
		}
		if v, ok, _ := unstructured.NestedFieldCopy(obj.Object, r.names()...); ok {
			_ = unstructured.SetNestedField(found, v, r.names()...) // a rule of a parent field may have set it already
		}
	}
	return found
}

// goesUp reports whether a rule sends a field of the spec up.
func goesUp(r rule) bool { return r.up }

// statusGoesDown reports whether a rule gives a field of the status to the upstream.
func statusGoesDown(r rule) bool { return r.ofStatus() && r.owner == Upstream }

// isReverse reports whether a rule sends a field of the spec up or a field of the status down.
func isReverse(r rule) bool { return goesUp(r) || statusGoesDown(r) }

// fieldsUp writes upstream the fields of the spec that belong to the downstream and whose rule has Up.
type fieldsUp struct{ *syncedType }

// bring writes upstream the fields of o.d that go up, if they differ from spec, which has their present upstream
// values. After a write it sets the resourceVersion and generation of o.u to the new ones. A field that a Splitter
// owns upstream does not go up: the Splitter would change it back.
func (f fieldsUp) bring(ctx context.Context, o observed, spec map[string]any) error {
	found := fields(o.d, func(r rule) bool {
		theirs := r.owner == Downstream || !loop.OwnsPath(o.d, manager, r.names()...)
		return goesUp(r) && theirs && !loop.OwnsPath(o.u, splitterv1alpha1.Manager, r.names()...)
	}, f.rules)
	if len(found) == 0 {
		return nil
	}
	want := loop.Identity(o.u)
	for name, v := range found {
		want.Object[name] = v
	}
	present := &unstructured.Unstructured{Object: spec}
	present.Object["metadata"] = o.u.Object["metadata"]
	if !loop.Differs(present, want, f.syncer.fieldsManager) {
		return nil
	}
	after, err := f.up.apply(ctx, want, f.syncer.fieldsManager, true)
	if err != nil {
		return wrap("write fields upstream", err)
	}
	o.u.SetResourceVersion(after.GetResourceVersion())
	o.u.SetGeneration(after.GetGeneration())
	f.wrote(ctx, WriteFields, o.NamespacedName)
	return nil
}
