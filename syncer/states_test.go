// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/internal/docpage"
	"github.com/atoll-dev/atoll/internal/loop"
)

// drawContent draws the content of an object that is shaped like a Deployment.
func drawContent(t *rapid.T, label string) map[string]any {
	values := []any{nil, int64(0), int64(3), "three", map[string]any{"app": "web"}, map[string]any{"app": nil}}
	content := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}
	spec := map[string]any{}
	for _, field := range []string{"replicas", "paused", "selector"} {
		if v := rapid.SampledFrom(values).Draw(t, label+" "+field); rapid.Bool().Draw(t, label+" has "+field) {
			spec[field] = v
		}
	}
	content["spec"] = spec
	return content
}

// drawMarks gives obj marks, of which each may be right, wrong, malformed or missing.
func drawMarks(t *rapid.T, obj *unstructured.Unstructured) {
	labels, annotations := map[string]string{}, map[string]string{}
	draw := func(of map[string]string, mark string, values ...string) {
		if rapid.Bool().Draw(t, "has "+mark) {
			of[mark] = rapid.SampledFrom(values).Draw(t, mark)
		}
	}
	draw(labels, ownerLabel, "owner", "owner", "another", "")
	draw(labels, "team", "one", "two")
	draw(annotations, originAnnotation, "default/x", "default/x", "default/other", "a/b/c", "x", "")
	draw(annotations, uidAnnotation, "uid", "uid", "another", "", " ")
	draw(annotations, appliedAnnotation, "of-another-time", "")
	draw(annotations, "splitter.atoll.dev/parent-name", "web")
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
}

// fieldsOf returns the fields of v in the form of managedFields.
func fieldsOf(v any) map[string]any {
	fields := map[string]any{}
	if m, ok := v.(map[string]any); ok {
		for name, inner := range m {
			fields["f:"+name] = fieldsOf(inner)
		}
	}
	return fields
}

// ownedByManager makes a manager own the labels, annotations and spec of an object.
func ownedByManager(t require.TestingT, obj *unstructured.Unstructured, manager string) {
	meta, _ := obj.Object["metadata"].(map[string]any)
	setManagedFields(t, obj, manager, map[string]any{
		"metadata": map[string]any{"labels": meta["labels"], "annotations": meta["annotations"]}, "spec": obj.Object["spec"],
	})
}

// setManagedFields sets the managedFields of obj to one apply of the given fields by the manager.
func setManagedFields(t require.TestingT, obj *unstructured.Unstructured, manager string, fields map[string]any) {
	data, err := json.Marshal(fieldsOf(fields))
	require.NoError(t, err)
	entry := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: obj.GetAPIVersion(), FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{}}
	entry.FieldsV1.SetRawBytes(data)
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{entry})
}

// The syncer takes an object at the namespace and name of a downstream object for its own only if it has written the
// label of the object itself, or if the object's marks have the UID of the upstream object. After the syncer has
// applied the desired object, the next reconcile computes the same desired object, and therefore writes nothing.
func TestStatesOfCopies(t *testing.T) {
	key, place := types.NamespacedName{Namespace: "default", Name: "x"}, types.NamespacedName{Namespace: "default", Name: "x"}
	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	copies, states := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		states++
		s, err := newSyncer(nil, nil, Options{Target: "a", Rules: []Rule{{Type: deployment, Path: "spec.replicas", Owner: FirstWriter}}})
		require.NoError(t, err)
		s.owner = "owner"
		r := newSyncedType(s, "deployments.apps", kind{Kind: "Deployment", GVR: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespaced: true})
		w := specs{syncedType: r}
		u := &unstructured.Unstructured{Object: drawContent(t, "upstream")}
		drawMarks(t, u)
		u.SetNamespace(key.Namespace)
		u.SetName(key.Name)
		u.SetUID("uid")
		d := &unstructured.Unstructured{Object: drawContent(t, "downstream")}
		drawMarks(t, d)
		d.SetNamespace(place.Namespace)
		d.SetName(place.Name)
		d.SetUID("below")
		ours := rapid.Bool().Draw(t, "ours")
		if ours {
			ownedByManager(t, d, manager)
		} else {
			ownedByManager(t, d, "somebody")
		}
		held := rapid.Bool().Draw(t, "held")
		marks := d.GetAnnotations()
		is := s.relation(d, u, held)
		signed := ours && d.GetLabels()[ownerLabel] == "owner"
		right := marks[originAnnotation] == "default/x" && marks[uidAnnotation] == "uid"
		switch {
		case right:
			require.Equal(t, copied, is)
		case is == copied:
			require.True(t, signed || marks[uidAnnotation] == "uid", "another client's object is taken for ours")
		case is == preceded:
			require.True(t, signed || marks[originAnnotation] == "default/x")
		}
		if is != copied {
			return
		}
		copies++
		for range 2 {
			want, err := w.desired(runtimeCopy(u), d, place)
			require.NoError(t, err)
			after := want.DeepCopy()
			after.SetUID("below")
			ownedByManager(t, after, manager)
			require.Equal(t, copied, s.relation(after, u, held))
			require.Equal(t, "owner", after.GetLabels()[ownerLabel])
			require.NotContains(t, after.GetAnnotations(), "splitter.atoll.dev/parent-name")
			again, err := w.desired(runtimeCopy(u), after, place)
			require.NoError(t, err)
			_, sent, _ := unstructured.NestedFieldNoCopy(after.Object, "spec", "replicas")
			if _, wanted, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "replicas"); sent || !wanted {
				require.Equal(t, want.hash, again.hash, "the next reconcile wants another object")
				require.True(t, loop.Owns(after, again.Unstructured, manager), "the next reconcile writes")
			}
			d = after
		}
	})
	if !t.Failed() {
		docpage.Section(t, "states.md", "syncer", fmt.Sprintf("- syncer: %d states of an object upstream and one downstream, in %d of which the second is the downstream object of the first; the second plan changes nothing\n", states, copies))
	}
}

func runtimeCopy(u *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(u.Object)}
}
