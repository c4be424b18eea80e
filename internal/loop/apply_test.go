// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region/regiontest"
)

const manager = "tester"

var background = context.Background()

func withSpec(fields map[string]any, labels ...string) *unstructured.Unstructured {
	obj := box("a", labels...)
	obj.Object["spec"] = fields
	return obj
}

func read(t require.TestingT, c dynamic.ResourceInterface, strip ...string) *unstructured.Unstructured {
	obj, err := c.Get(background, "a", metav1.GetOptions{})
	require.NoError(t, err)
	if len(strip) > 0 {
		loop.KeepManager(strip...)(obj)
	}
	return obj
}

func TestApplyWritesWhatDiffers(t *testing.T) {
	condition := func(kind, status string) map[string]any { return map[string]any{"type": kind, "status": status} }
	base := func(edit func(map[string]any)) map[string]any {
		fields := map[string]any{
			"size": int64(1), "note": "n", "tags": []any{"x", "y"}, "steps": []any{"1", "2"},
			"conditions": []any{condition("Ready", "True"), condition("Bound", "False")},
		}
		edit(fields)
		return fields
	}
	for name, test := range map[string]struct {
		desired *unstructured.Unstructured
		changed bool
	}{
		"the same":             {withSpec(base(func(map[string]any) {}), "l"), false},
		"in another order":     {withSpec(base(func(f map[string]any) { f["tags"] = []any{"y", "x"} }), "l"), false},
		"null is not there":    {withSpec(base(func(f map[string]any) { delete(f, "note"); f["note"] = nil }), "l"), true},
		"another value":        {withSpec(base(func(f map[string]any) { f["size"] = int64(2) }), "l"), true},
		"no longer desired":    {withSpec(base(func(f map[string]any) { delete(f, "note") }), "l"), true},
		"another label":        {withSpec(base(func(map[string]any) {}), "m"), true},
		"no label":             {withSpec(base(func(map[string]any) {})), true},
		"fewer in a set":       {withSpec(base(func(f map[string]any) { f["tags"] = []any{"x"} }), "l"), true},
		"more in a set":        {withSpec(base(func(f map[string]any) { f["tags"] = []any{"x", "y", "z"} }), "l"), true},
		"a list's order":       {withSpec(base(func(f map[string]any) { f["steps"] = []any{"2", "1"} }), "l"), true},
		"an empty list":        {withSpec(base(func(f map[string]any) { f["steps"] = []any{} }), "l"), true},
		"a condition changed":  {withSpec(base(func(f map[string]any) { f["conditions"].([]any)[0] = condition("Ready", "False") }), "l"), true},
		"a condition replaced": {withSpec(base(func(f map[string]any) { f["conditions"].([]any)[0] = condition("Other", "True") }), "l"), true},
		"a condition less":     {withSpec(base(func(f map[string]any) { f["conditions"] = f["conditions"].([]any)[:1] }), "l"), true},
		"another object": {func() *unstructured.Unstructured {
			o := withSpec(base(func(map[string]any) {}), "l")
			o.SetResourceVersion("1")
			return o
		}(), false},
		"nothing": {box("a"), true},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, c := newBoxes(t, regiontest.Options{})
			changed, err := loop.Apply(t.Context(), c, nil, withSpec(base(func(map[string]any) {}), "l"), manager)
			require.NoError(t, err)
			require.True(t, changed)
			// Other clients write other fields, by apply and by update.
			theirs, err := c.Apply(t.Context(), "a", withSpec(map[string]any{"conditions": []any{condition("Theirs", "True")}}, "theirs"),
				metav1.ApplyOptions{FieldManager: "other"})
			require.NoError(t, err)
			spec := theirs.Object["spec"].(map[string]any)
			spec["conditions"] = append(spec["conditions"].([]any), condition("Updated", "True"))
			theirs.SetLabels(map[string]string{"l": "yes", "theirs": "yes", "updated": "yes"})
			_, err = c.Update(t.Context(), theirs, metav1.UpdateOptions{FieldManager: "kubectl"})
			require.NoError(t, err)
			current := read(t, c, manager)
			s.Reset()
			changed, err = loop.Apply(t.Context(), c, current, test.desired, manager)
			require.NoError(t, err)
			require.Equal(t, test.changed, changed)
			require.Equal(t, test.changed, count(s, "patch") == 1)
			changed, err = loop.Apply(t.Context(), c, read(t, c), test.desired, manager)
			require.NoError(t, err)
			require.Equal(t, name == "nothing", changed, "a manager that owns nothing has no entry")
			require.Subset(t, read(t, c).GetLabels(), map[string]string{"theirs": "yes", "updated": "yes"})
		})
	}
}

func TestApplyTakesBackWhatOthersChanged(t *testing.T) {
	_, _, c := newBoxes(t, regiontest.Options{})
	desired := withSpec(map[string]any{"size": int64(1), "steps": []any{"1"}}, "l")
	_, err := loop.Apply(t.Context(), c, nil, desired, manager)
	require.NoError(t, err)
	for _, spec := range []map[string]any{{"size": int64(2), "steps": []any{"1"}}, {"size": int64(1), "steps": []any{"2"}}, {"size": int64(1)}, {}} {
		drifted := read(t, c)
		drifted.Object["spec"] = spec
		_, err := c.Update(t.Context(), drifted, metav1.UpdateOptions{FieldManager: "kubectl"})
		require.NoError(t, err)
		changed, err := loop.Apply(t.Context(), c, read(t, c, manager), desired, manager)
		require.NoError(t, err)
		require.True(t, changed)
		require.Equal(t, desired.Object["spec"], read(t, c).Object["spec"])
	}
}

func TestApplyStatus(t *testing.T) {
	s, _, c := newBoxes(t, regiontest.Options{})
	_, err := loop.Apply(t.Context(), c, nil, withSpec(map[string]any{"size": int64(1)}), manager)
	require.NoError(t, err)
	status := box("a")
	status.Object["status"] = map[string]any{"note": "fine"}
	changed, err := loop.Apply(t.Context(), c, read(t, c, manager), status, manager, "status")
	require.NoError(t, err)
	require.True(t, changed)
	s.Reset()
	for _, test := range []struct {
		desired     *unstructured.Unstructured
		subresource []string
	}{{status, []string{"status"}}, {withSpec(map[string]any{"size": int64(1)}), nil}} {
		changed, err = loop.Apply(t.Context(), c, read(t, c, manager), test.desired, manager, test.subresource...)
		require.NoError(t, err)
		require.False(t, changed)
	}
	require.Zero(t, count(s, "patch"))
	status.Object["status"] = map[string]any{"size": int64(3)}
	_, err = loop.Apply(t.Context(), c, read(t, c, manager), status, manager, "status")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"size": int64(3)}, read(t, c).Object["status"])
}

func TestApplyDoesNotMeetAReplacement(t *testing.T) {
	_, _, c := newBoxes(t, regiontest.Options{})
	create(t, c, "a")
	old := read(t, c)
	require.NoError(t, c.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	create(t, c, "a")
	desired := withSpec(map[string]any{"size": int64(1)})
	desired.SetUID(old.GetUID())
	changed, err := loop.Apply(t.Context(), c, old, desired, manager)
	require.True(t, changed)
	require.ErrorContains(t, err, "apply Box default/a")
	require.ErrorContains(t, err, "uid")

	desired = box("a") // servers do not check the UID in writes of a status
	desired.Object["status"] = map[string]any{"note": "fine"}
	desired.SetUID(old.GetUID())
	_, err = loop.Apply(t.Context(), c, old, desired, manager, "status")
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.NotContains(t, read(t, c).Object, "status")
}

func TestKeepManager(t *testing.T) {
	_, _, c := newBoxes(t, regiontest.Options{})
	for _, m := range []string{"one", "two"} {
		_, err := loop.Apply(t.Context(), c, nil, box("a", m), m)
		require.NoError(t, err)
	}
	require.Len(t, read(t, c).GetManagedFields(), 2)
	require.Len(t, read(t, c, "two", "three").GetManagedFields(), 1)
	require.Empty(t, read(t, c, "three").GetManagedFields())
	loop.KeepManager("two")(&unstructured.Unstructured{Object: map[string]any{}})
}

// From random previous states, Apply returns true exactly if the object's resourceVersion changes.
// A second Apply of the same object returns false. Apply does not modify desired.
func TestApplyIsExact(t *testing.T) {
	s, _, c := newBoxes(t, regiontest.Options{Events: 10})
	content := rapid.Custom(func(t *rapid.T) *unstructured.Unstructured {
		word := rapid.SampledFrom([]string{"x", "y", "z"})
		fields := map[string]any{"size": rapid.Int64Range(0, 2).Draw(t, "size")}
		if note := rapid.OneOf(rapid.Just(""), word).Draw(t, "note"); note != "" {
			fields["note"] = note
		}
		// Apply would write an empty list that other clients fill each time.
		if tags := rapid.SliceOfNDistinct(word, 0, 2, rapid.ID[string]).Draw(t, "tags"); len(tags) > 0 {
			fields["tags"] = anys(tags)
		}
		if rapid.Bool().Draw(t, "with steps") {
			fields["steps"] = anys(rapid.SliceOfN(word, 0, 2).Draw(t, "steps"))
		}
		var conditions []any
		for _, kind := range rapid.SliceOfNDistinct(word, 0, 2, rapid.ID[string]).Draw(t, "conditions") {
			conditions = append(conditions, map[string]any{"type": kind, "status": word.Draw(t, "status")})
		}
		if conditions != nil {
			fields["conditions"] = conditions
		}
		obj := withSpec(fields)
		if rapid.Bool().Draw(t, "with label") {
			obj.SetLabels(map[string]string{word.Draw(t, "label"): "yes"})
		}
		return obj
	})
	rapid.Check(t, func(t *rapid.T) {
		defer s.Reset()
		defer func() { require.NoError(t, c.Delete(background, "a", metav1.DeleteOptions{})) }()
		_, err := loop.Apply(background, c, nil, content.Draw(t, "first"), manager)
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "others apply") {
			_, err := c.Apply(background, "a", content.Draw(t, "applied"), metav1.ApplyOptions{FieldManager: "other", Force: true})
			require.NoError(t, err)
		}
		if rapid.Bool().Draw(t, "others update") {
			obj := read(t, c)
			obj.Object["spec"] = content.Draw(t, "updated").Object["spec"]
			_, err := c.Update(background, obj, metav1.UpdateOptions{FieldManager: "kubectl"})
			require.NoError(t, err)
		}
		before := read(t, c, manager)
		desired := content.Draw(t, "desired")
		if rapid.Bool().Draw(t, "as it is") {
			desired.Object["spec"] = before.DeepCopy().Object["spec"]
		}
		kept := desired.DeepCopy()
		changed, err := loop.Apply(background, c, before, desired, manager)
		require.NoError(t, err)
		require.Equal(t, kept, desired, "not modified")
		require.Equal(t, changed, read(t, c).GetResourceVersion() != before.GetResourceVersion())
		changed, err = loop.Apply(background, c, read(t, c), desired, manager)
		require.NoError(t, err)
		require.False(t, changed)
	})
}

func anys(list []string) any {
	out := []any{}
	for _, v := range list {
		out = append(out, v)
	}
	return out
}

func TestOwns(t *testing.T) {
	condition := func(kind, status string) map[string]any { return map[string]any{"type": kind, "status": status} }
	fields := func(edits ...func(map[string]any)) map[string]any {
		f := map[string]any{"size": int64(1), "tags": []any{"x"}, "steps": []any{"1", "2"}, "conditions": []any{condition("Ready", "True")}}
		for _, edit := range edits {
			edit(f)
		}
		return f
	}
	for name, test := range map[string]struct {
		theirs map[string]any // fields that another client writes
		ours   map[string]any // fields to apply
		owns   bool
	}{
		"untouched":                 {fields(), fields(), true},
		"another value was wanted":  {fields(), fields(func(f map[string]any) { f["size"] = int64(7) }), true},
		"a field more is wanted":    {fields(), fields(func(f map[string]any) { f["note"] = "n" }), false},
		"emptiness is nobody's":     {fields(), fields(func(f map[string]any) { f["note"] = nil }), true},
		"a value was changed":       {fields(func(f map[string]any) { f["size"] = int64(2) }), fields(), false},
		"a value was removed":       {fields(func(f map[string]any) { delete(f, "size") }), fields(), false},
		"a list was changed":        {fields(func(f map[string]any) { f["steps"] = []any{"2"} }), fields(), false},
		"an element was added":      {fields(func(f map[string]any) { f["tags"] = []any{"x", "y"} }), fields(), true},
		"an element was removed":    {fields(func(f map[string]any) { f["tags"] = []any{} }), fields(), false},
		"an item was changed":       {fields(func(f map[string]any) { f["conditions"] = []any{condition("Ready", "False")} }), fields(), false},
		"an item without its key":   {fields(), fields(func(f map[string]any) { f["conditions"] = []any{map[string]any{"status": "x"}} }), true},
		"others have fields beside": {fields(func(f map[string]any) { f["note"] = "theirs" }), fields(), true},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, c := newBoxes(t, regiontest.Options{})
			_, err := c.Apply(background, "a", withSpec(fields()), metav1.ApplyOptions{FieldManager: manager})
			require.NoError(t, err)
			current := read(t, c)
			current.Object["spec"] = test.theirs
			_, err = c.Update(background, current, metav1.UpdateOptions{FieldManager: "somebody"})
			require.NoError(t, err)
			require.Equal(t, test.owns, loop.Owns(read(t, c, manager), withSpec(test.ours), manager))
		})
	}
}

func TestOwnsPath(t *testing.T) {
	_, _, c := newBoxes(t, regiontest.Options{})
	_, err := c.Apply(background, "a", withSpec(map[string]any{"size": int64(1), "steps": []any{"1"}}), metav1.ApplyOptions{FieldManager: manager})
	require.NoError(t, err)
	current := read(t, c, manager)
	require.True(t, loop.OwnsPath(current, manager, "spec"))
	require.True(t, loop.OwnsPath(current, manager, "spec", "size"))
	require.True(t, loop.OwnsPath(current, manager, "spec", "steps"))
	require.False(t, loop.OwnsPath(current, manager, "spec", "note"))
	require.False(t, loop.OwnsPath(current, "somebody", "spec", "size"))
}

func TestStatusManagers(t *testing.T) {
	_, _, c := newBoxes(t, regiontest.Options{})
	status := func(fields map[string]any) *unstructured.Unstructured {
		obj := box("a")
		obj.Object["status"] = fields
		return obj
	}
	apply := func(by string, fields map[string]any) *unstructured.Unstructured {
		_, err := c.Apply(background, "a", status(fields), metav1.ApplyOptions{FieldManager: by, Force: true}, "status")
		require.NoError(t, err)
		obj, err := c.Get(background, "a", metav1.GetOptions{})
		require.NoError(t, err)
		return obj
	}
	_, err := c.Apply(background, "a", withSpec(map[string]any{"size": int64(1)}), metav1.ApplyOptions{FieldManager: manager})
	require.NoError(t, err)
	obj := apply(manager, map[string]any{"note": "Bound"})
	require.Equal(t, []string{manager}, loop.StatusManagers(obj, "note"))
	require.Empty(t, loop.StatusManagers(obj, "size"))
	require.Equal(t, []string{manager}, loop.StatusManagers(obj))

	obj = apply("somebody", map[string]any{"note": "Bound"})
	require.ElementsMatch(t, []string{manager, "somebody"}, loop.StatusManagers(obj, "note"), "the same value is both's")
	obj = apply("somebody", map[string]any{"note": "Conflict"})
	require.Equal(t, []string{"somebody"}, loop.StatusManagers(obj, "note"))

	obj.Object["status"] = map[string]any{"note": "Pending"}
	_, err = c.UpdateStatus(background, obj, metav1.UpdateOptions{FieldManager: "updater"})
	require.NoError(t, err)
	obj, err = c.Get(background, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"updater"}, loop.StatusManagers(obj, "note"))
	obj.SetManagedFields(nil)
	require.Empty(t, loop.StatusManagers(obj, "note"))
}
