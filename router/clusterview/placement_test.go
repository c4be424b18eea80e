// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var ofC1 = placement{"c1", v1alpha1.ClusterLabel}

// Whatever the labels of an object are, a selector that is passed on to the region selects only placed objects. The test
// tries all selectors of up to two terms over three labels and four values.
func TestImpliedSelectorsSelectPlacedObjects(t *testing.T) {
	keys, values := []string{v1alpha1.ClusterLabel, v1alpha1.StateLabelPrefix + "c1", "app"}, []string{"c1", "c2", "Sync", ""}
	var terms []string
	for _, key := range keys {
		terms = append(terms, key, "!"+key)
		for i, one := range values {
			terms = append(terms, key+"="+one, key+"=="+one, key+"!="+one, key+" in ("+one+")", key+" notin ("+one+")")
			for _, other := range values[i+1:] {
				terms = append(terms, key+" in ("+one+","+other+")", key+" notin ("+one+","+other+")")
			}
		}
	}
	var objects []map[string]string
	for n := range 5 * 5 * 5 { // each label has one of the values, or is absent
		object := map[string]string{}
		for _, key := range keys {
			if v := n % 5; v < len(values) {
				object[key] = values[v]
			}
			n /= 5
		}
		objects = append(objects, object)
	}
	passed := 0
	try := func(text string) {
		selector, err := labels.Parse(text)
		require.NoError(t, err)
		if !ofC1.implied(selector) {
			return
		}
		passed++
		for _, object := range objects {
			if selector.Matches(labels.Set(object)) && !ofC1.has(&metav1.ObjectMeta{Labels: object}) {
				t.Fatalf("%s selects an object with %v", text, object)
			}
		}
	}
	for i, term := range terms {
		try(term)
		for _, other := range terms[i+1:] {
			try(term + "," + other)
		}
	}
	t.Logf("%d selectors are passed on", passed)
	require.Positive(t, passed)
}

// The selectors that a syncer sends are passed on.
func TestSelectorsOfASyncerAreImplied(t *testing.T) {
	for text, want := range map[string]bool{
		v1alpha1.ClusterLabel + "=c1":           true,
		v1alpha1.StateLabelPrefix + "c1=Sync":   true,
		v1alpha1.ClusterLabel + "=c1,app=web":   true,
		v1alpha1.ClusterLabel + " in (c1)":      true,
		v1alpha1.ClusterLabel + " in (c1,c2)":   false,
		v1alpha1.ClusterLabel + "=c2":           false,
		v1alpha1.StateLabelPrefix + "c1=Upsync": false,
		v1alpha1.StateLabelPrefix + "c2=Sync":   false,
		v1alpha1.StateLabelPrefix + "c1":        false,
		v1alpha1.ClusterLabel + " notin (c1)":   false,
		v1alpha1.ClusterLabel + "!=c1":          false,
		"":                                      false,
	} {
		selector, err := labels.Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, ofC1.implied(selector), text)
	}
}

func object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "web", "uid": "u", "resourceVersion": "1", "generation": int64(1), "finalizers": []any{"other", "syncer.atoll.dev/c2"},
			"labels": map[string]any{v1alpha1.ClusterLabel: "c1"}, "annotations": map[string]any{"note": "x"},
			"managedFields": []any{map[string]any{"manager": "m"}},
		},
		"spec":   map[string]any{"replicas": int64(1), "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"image": "i"}}}}},
		"status": map[string]any{"replicas": int64(1)},
	}}
}

func TestDifference(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*unstructured.Unstructured)
		fields []string
		want   string
	}{
		"nothing":      {func(*unstructured.Unstructured) {}, nil, ""},
		"a new status": {func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"x": "y"} }, nil, ""},
		"no status":    {func(o *unstructured.Unstructured) { delete(o.Object, "status") }, nil, ""},
		"server fields": {func(o *unstructured.Unstructured) {
			o.SetResourceVersion("2")
			o.SetGeneration(2)
			o.SetManagedFields(nil)
		}, nil, ""},
		"its finalizer": {func(o *unstructured.Unstructured) {
			o.SetFinalizers([]string{"other", "syncer.atoll.dev/c1", "syncer.atoll.dev/c2"})
		}, nil, ""},
		"all finalizers": {func(o *unstructured.Unstructured) { o.SetFinalizers(nil) }, nil, "metadata.finalizers"},
		"their order":    {func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"syncer.atoll.dev/c2", "other"}) }, nil, "metadata.finalizers"},
		"annotations": {func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{"note": "x", v1alpha1.SyncedAnnotationPrefix + "c1": "1", v1alpha1.StatusAnnotationPrefix + "c1": "2", v1alpha1.UnscheduledAnnotationPrefix + "c1": "3"})
		}, nil, ""},
		"first annotations": {func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{v1alpha1.SyncedAnnotationPrefix + "c1": "1"})
		}, nil, "metadata.annotations.note"},
		"no annotations":     {func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }, nil, "metadata.annotations.note"},
		"replicas":           {func(o *unstructured.Unstructured) { o.Object["spec"].(map[string]any)["replicas"] = int64(2) }, nil, "spec.replicas"},
		"permitted replicas": {func(o *unstructured.Unstructured) { o.Object["spec"].(map[string]any)["replicas"] = int64(2) }, []string{"spec.replicas"}, ""},
		"a key with a dot":   {func(o *unstructured.Unstructured) { o.Object["spec.replicas"] = int64(2) }, []string{"spec.replicas"}, "spec.replicas"},
		"an image": {func(o *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedSlice(o.Object, []any{map[string]any{"image": "j"}}, "spec", "template", "spec", "containers"))
		}, []string{"spec.replicas"}, "spec.template.spec.containers"},
		"the kind":                   {func(o *unstructured.Unstructured) { o.SetKind("Secret") }, nil, "kind"},
		"no spec":                    {func(o *unstructured.Unstructured) { delete(o.Object, "spec") }, []string{"spec.replicas"}, "spec.template.spec.containers"},
		"a scalar in place of a map": {func(o *unstructured.Unstructured) { o.Object["spec"] = "x" }, []string{"spec.replicas"}, "spec"},
	} {
		t.Run(name, func(t *testing.T) {
			after := object()
			c.change(after)
			require.Equal(t, c.want, ofC1.difference(object(), after, c.fields))
		})
	}
}

// An object differs in one random field, at any depth. The difference is found unless the syncer may write the field.
func TestEveryDifferenceIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		after := object()
		at, path := after.Object, []string(nil)
		for {
			key := rapid.SampledFrom(append(slices.Sorted(maps.Keys(at)), "new")).Draw(t, "key")
			path = append(path, key)
			if below, ok := at[key].(map[string]any); ok && len(below) > 0 && rapid.Bool().Draw(t, "below") {
				at = below
				continue
			}
			at[key] = rapid.SampledFrom([]any{"changed", int64(77), []any{"changed"}, map[string]any{"changed": "x"}, nil}).Draw(t, "value")
			break
		}
		before := object()
		name := strings.Join(path, ".")
		mine := path[0] == "status" || slices.Contains([]string{"metadata.managedFields", "metadata.resourceVersion", "metadata.generation"}, name)
		// A missing field and null are the same to an API server.
		same := before.DeepCopy().Object
		if found := ofC1.difference(before, after, nil); (found == "") != (mine || text(same) == text(after.Object)) {
			t.Fatalf("a change of %s: found %q", name, found)
		}
	})
}

// text returns the JSON of an object without fields that are null.
func text(m map[string]any) string {
	data, _ := (&unstructured.Unstructured{Object: pruned(m)}).MarshalJSON()
	return string(data)
}

func pruned(m map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range m {
		if below, ok := value.(map[string]any); ok {
			value = pruned(below)
		}
		if value != nil {
			out[key] = value
		}
	}
	return out
}
