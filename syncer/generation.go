// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ofDownstream returns the part of d's status that belongs to the downstream.
func (s statuses) ofDownstream(d *unstructured.Unstructured) map[string]any {
	status, _ := d.Object["status"].(map[string]any)
	cloned := false
	for _, r := range s.rules {
		if !statusGoesDown(r) {
			continue
		}
		if len(r.path) == 1 {
			return nil
		}
		if !cloned {
			status, cloned = runtime.DeepCopyJSON(status), true
		}
		remove(status, r.path[1:])
	}
	return status
}

// statusFor returns the status of d with the generations of u in place of d's own. It returns false if d has no
// status, or a status of an earlier spec.
func (s statuses) statusFor(u, d *unstructured.Unstructured) (map[string]any, bool) {
	status := s.ofDownstream(d)
	if len(status) == 0 {
		return nil, false
	}
	observed, has, _ := unstructured.NestedInt64(status, "observedGeneration")
	_, known, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	switch {
	case !s.kind.DownStatus:
		// Without a status subresource each write of the status increments the generation. So no status can have
		// observed the present generation.
	case has && observed < d.GetGeneration():
		return nil, false
	case !has && known:
		return nil, false // d was created again, and no controller has observed it yet
	}
	status = runtime.DeepCopyJSON(status)
	unreported(s.kind.GroupKind(), status)
	ours := u.GetGeneration()
	if !s.kind.UpStatus {
		ours++ // writing the status will increment it
	}
	theirs := d.GetGeneration()
	if !s.kind.DownStatus {
		theirs-- // the last write of the status incremented it
	}
	translateGenerations(status, theirs, ours)
	return status, true
}

// translateGenerations replaces each observedGeneration in v, which is a status of the other side or a part of it.
// theirs is the present generation on the other side, and ours the present generation on the side that v is written
// to. A status that is n generations late stays n generations late.
func translateGenerations(v any, theirs, ours int64) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if observed, ok := inner.(int64); ok && name == "observedGeneration" {
				v[name] = max(0, ours-max(0, theirs-observed))
				continue
			}
			translateGenerations(inner, theirs, ours)
		}
	case []any:
		for _, inner := range v {
			translateGenerations(inner, theirs, ours)
		}
	}
}

// annotationsCount reports whether API servers count changes of annotations as generations of a type. They do so for
// Deployments only.
func annotationsCount(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Group: "apps", Kind: "Deployment"}
}

// sameButGeneration reports whether two statuses are equal except for generations.
func sameButGeneration(a, b map[string]any) bool {
	content := func(status map[string]any) string {
		status = runtime.DeepCopyJSON(status)
		translateGenerations(status, 0, 0)
		data, _ := json.Marshal(status) // cannot fail: it was decoded from JSON
		return string(data)
	}
	return content(a) == content(b)
}
