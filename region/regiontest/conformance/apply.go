// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func applies() []testCase {
	return []testCase{
		{"apply-creates", "an apply of a missing object creates it", func(e *env) {
			w := e.widgets()
			body, err := json.Marshal(e.widget("a", map[string]any{"size": int64(1)}).Object)
			require.NoError(e, err)
			reply := e.do("PATCH", e.path("a")+"?fieldManager=m", string(body), "Content-Type", "application/apply-patch+yaml")
			e.fact("code", 201, reply.Code)
			reply = e.do("PATCH", e.path("a")+"?fieldManager=m", string(body), "Content-Type", "application/apply-patch+yaml")
			e.fact("again", 200, reply.Code)
			got, err := w.Get(e.Ctx, "a", metav1.GetOptions{})
			require.NoError(e, err)
			e.fact("managers", []string{"m Apply "}, managersOf(got))
			e.fact("fields", `{"f:spec":{"f:size":{}}}`, fieldsOf(got, "m"))
			reply = e.do("PATCH", e.path("y")+"?fieldManager=m", "apiVersion: "+e.Group+"/v1\nkind: Widget\nspec: {size: 3}\n", "Content-Type", "application/apply-patch+yaml")
			e.fact("without a name", 400, reply.Code)
			e.fact("without a name, message", "the name of the object (y based on URL) was undeterminable: name must be provided", text(reply.Body["message"]))
			reply = e.do("PATCH", e.path("yy")+"?fieldManager=m", "apiVersion: "+e.Group+"/v1\nkind: Widget\nmetadata: {name: yy}\nspec: {size: 3}\n", "Content-Type", "application/apply-patch+yaml")
			e.fact("YAML", 201, reply.Code)
		}},
		{"apply-without-manager", "an apply needs a field manager", func(e *env) {
			w := e.widgets()
			_, err := w.Patch(e.Ctx, "a", types.ApplyPatchType, []byte(`{}`), metav1.PatchOptions{})
			e.fact("answer", `422 Invalid: PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch`, e.errorText(err))
			_, err = w.Patch(e.Ctx, "a", types.ApplyPatchType, []byte(`{}`), metav1.PatchOptions{FieldManager: "m"})
			e.fact("no kind", "400 BadRequest", codeAndReason(err))
			long := strings.Repeat("m", 129)
			_, err = w.Apply(e.Ctx, "a", e.widget("a", nil), metav1.ApplyOptions{FieldManager: long})
			e.fact("long manager", "422 Invalid", codeAndReason(err))
		}},
		{"apply-conflict", "two managers of one value conflict, unless forced", func(e *env) {
			w := e.widgets()
			_, err := w.Apply(e.Ctx, "a", e.widget("a", map[string]any{"size": int64(1)}), metav1.ApplyOptions{FieldManager: "one"})
			require.NoError(e, err)
			_, err = w.Apply(e.Ctx, "a", e.widget("a", map[string]any{"size": int64(2)}), metav1.ApplyOptions{FieldManager: "two"})
			e.fact("conflict", `409 Conflict: Apply failed with 1 conflict: conflict with "one": .spec.size`, e.errorText(err))
			e.fact("causes", []string{`FieldManagerConflict .spec.size: conflict with "one"`}, e.causes(err))
			same, err := w.Apply(e.Ctx, "a", e.widget("a", map[string]any{"size": int64(1)}), metav1.ApplyOptions{FieldManager: "two"})
			require.NoError(e, err)
			e.fact("the same value is shared", []string{"one Apply ", "two Apply "}, managersOf(same))
			forced, err := w.Apply(e.Ctx, "a", e.widget("a", map[string]any{"size": int64(2)}), metav1.ApplyOptions{FieldManager: "two", Force: true})
			require.NoError(e, err)
			e.fact("forced", []string{"two Apply "}, managersOf(forced))
			e.fact("value", int64(2), field(forced, "spec", "size"))
		}},
		{"apply-removes", "a field is removed when its only manager drops it; it stays while another manager owns it", func(e *env) {
			w := e.widgets()
			_, err := w.Apply(e.Ctx, "a", e.widget("a", map[string]any{"size": int64(1), "color": "red"}), metav1.ApplyOptions{FieldManager: "one"})
			require.NoError(e, err)
			_, err = w.Apply(e.Ctx, "a", e.widget("a", map[string]any{"color": "red"}), metav1.ApplyOptions{FieldManager: "two"})
			require.NoError(e, err)
			after, err := w.Apply(e.Ctx, "a", e.widget("a", map[string]any{}), metav1.ApplyOptions{FieldManager: "one"})
			require.NoError(e, err)
			e.fact("spec", map[string]any{"color": "red", "mode": "auto"}, after.Object["spec"])
			again, err := w.Apply(e.Ctx, "a", e.widget("a", map[string]any{"color": "red"}), metav1.ApplyOptions{FieldManager: "two"})
			require.NoError(e, err)
			e.fact("the same apply changes nothing", after.GetResourceVersion(), again.GetResourceVersion())
		}},
		{"apply-only-creates", "an apply with an impossible resourceVersion only creates; it never changes an existing object", func(e *env) {
			w := e.widgets()
			asked := e.widget("a", map[string]any{"size": int64(1)})
			asked.SetResourceVersion("1")
			made, err := w.Apply(e.Ctx, "a", asked, metav1.ApplyOptions{FieldManager: "m"})
			require.NoError(e, err)
			e.fact("managers", []string{"m Apply "}, managersOf(made))
			_, err = w.Apply(e.Ctx, "a", asked, metav1.ApplyOptions{FieldManager: "m"})
			e.fact("again", "409 Conflict", codeAndReason(err))
			_, err = w.Apply(e.Ctx, "a", asked, metav1.ApplyOptions{FieldManager: "m", Force: true})
			e.fact("with force", "409 Conflict", codeAndReason(err))
			after, err := w.Get(e.Ctx, "a", metav1.GetOptions{})
			require.NoError(e, err)
			e.fact("it stays", made.GetResourceVersion(), after.GetResourceVersion())
		}},
		{"apply-lists", "lists are merged according to the schema: by key, as a set, or replaced", func(e *env) {
			w := e.widgets()
			_, err := w.Apply(e.Ctx, "a", e.widget("a", map[string]any{
				"ports": []any{map[string]any{"name": "http", "port": int64(80)}}, "tags": []any{"x"},
			}), metav1.ApplyOptions{FieldManager: "one"})
			require.NoError(e, err)
			both, err := w.Apply(e.Ctx, "a", e.widget("a", map[string]any{
				"ports": []any{map[string]any{"name": "https", "port": int64(443)}}, "tags": []any{"y"},
			}), metav1.ApplyOptions{FieldManager: "two"})
			require.NoError(e, err)
			e.fact("by key", []any{
				map[string]any{"name": "http", "port": int64(80), "protocol": "TCP"},
				map[string]any{"name": "https", "port": int64(443), "protocol": "TCP"},
			}, field(both, "spec", "ports"))
			e.fact("set", []any{"x", "y"}, field(both, "spec", "tags"))
			_, err = w.Apply(e.Ctx, "a", e.widget("a", map[string]any{"list": []any{"1"}}), metav1.ApplyOptions{FieldManager: "three"})
			require.NoError(e, err)
			_, err = w.Apply(e.Ctx, "a", e.widget("a", map[string]any{"list": []any{"2"}}), metav1.ApplyOptions{FieldManager: "four"})
			e.fact("whole", `409 Conflict: Apply failed with 1 conflict: conflict with "three": .spec.list`, e.errorText(err))
			_, err = w.Apply(e.Ctx, "a", e.widget("a", map[string]any{"ports": []any{map[string]any{"name": "http", "port": int64(81)}}}), metav1.ApplyOptions{FieldManager: "four"})
			e.fact("conflict in an item", `409 Conflict: Apply failed with 1 conflict: conflict with "one": .spec.ports[name="http"].port`, e.errorText(err))
		}},
		{"apply-status", "status is applied through its subresource", func(e *env) {
			w := e.widgets()
			o := e.widget("a", map[string]any{"size": int64(1)})
			_, err := w.Apply(e.Ctx, "a", o, metav1.ApplyOptions{FieldManager: "one"})
			require.NoError(e, err)
			s := e.widget("a", nil)
			s.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
			after, err := w.ApplyStatus(e.Ctx, "a", s, metav1.ApplyOptions{FieldManager: "one"})
			require.NoError(e, err)
			e.fact("managers", []string{"one Apply ", "one Apply status"}, managersOf(after))
			e.fact("conditions", []any{map[string]any{"type": "Ready", "status": "True"}}, field(after, "status", "conditions"))
			after, err = w.Apply(e.Ctx, "a", o, metav1.ApplyOptions{FieldManager: "one"})
			require.NoError(e, err)
			e.fact("an apply of the rest leaves it", "True", after.Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)["status"])
			_, err = w.ApplyStatus(e.Ctx, "missing", e.widget("missing", nil), metav1.ApplyOptions{FieldManager: "one"})
			e.fact("missing", `404 NotFound: widgets.GROUP "missing" not found`, e.errorText(err))
		}},
		{"apply-preconditions", "an apply with a uid or a resourceVersion is conditional", func(e *env) {
			w := e.widgets()
			o := e.widget("a", nil)
			o.SetUID("00000000-0000-0000-0000-000000000000")
			_, err := w.Apply(e.Ctx, "a", o, metav1.ApplyOptions{FieldManager: "m"})
			e.fact("missing with uid", `409 Conflict: Operation cannot be fulfilled on widgets.GROUP "a": uid mismatch: the provided object specified uid 00000000-0000-0000-0000-000000000000, and no existing object was found`, e.errorText(err))
			made, err := w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			_, err = w.Apply(e.Ctx, "a", o, metav1.ApplyOptions{FieldManager: "m"})
			e.fact("other uid", `422 Invalid`, codeAndReason(err))
			o.SetUID("")
			o.SetResourceVersion("1")
			_, err = w.Apply(e.Ctx, "a", o, metav1.ApplyOptions{FieldManager: "m"})
			e.fact("stale", `409 Conflict: Operation cannot be fulfilled on widgets.GROUP "a": `+modified, e.errorText(err))
			o.SetResourceVersion(made.GetResourceVersion())
			_, err = w.Apply(e.Ctx, "a", o, metav1.ApplyOptions{FieldManager: "m"})
			e.fact("present", "OK", e.errorText(err))
			o = e.widget("a", nil)
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x", Operation: "Apply", FieldsType: "FieldsV1", APIVersion: e.Group + "/v1"}})
			body, err := json.Marshal(o.Object)
			require.NoError(e, err)
			reply := e.do("PATCH", e.path("a")+"?fieldManager=m", string(body), "Content-Type", "application/apply-patch+yaml")
			e.fact("managedFields", "metadata.managedFields must be nil", text(reply.Body["message"]))
			o = e.widget("a", map[string]any{"unheard": "of"})
			_, err = w.Apply(e.Ctx, "a", o, metav1.ApplyOptions{FieldManager: "m"})
			e.fact("unknown field", true, strings.Contains(e.errorText(err), ".spec.unheard: field not declared in schema"))
		}},
		{"apply-builtin", "applies to built-in types use their schemas", func(e *env) {
			d := e.in(deployments)
			o := deployment("a")
			_, err := d.Apply(e.Ctx, "a", o, metav1.ApplyOptions{FieldManager: "one"})
			require.NoError(e, err)
			side := &unstructured.Unstructured{Object: parse(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: [{name: side, image: "example.org/side:1"}]}}}}`)}
			both, err := d.Apply(e.Ctx, "a", side, metav1.ApplyOptions{FieldManager: "two"})
			require.NoError(e, err)
			e.fact("containers by name", 2, len(field(both, "spec", "template", "spec", "containers").([]any)))
			e.fact("fields", `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"side\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`, fieldsOf(both, "two"))
			scaled := &unstructured.Unstructured{Object: parse(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 5}}`)}
			_, err = d.Apply(e.Ctx, "a", scaled, metav1.ApplyOptions{FieldManager: "three"})
			e.fact("conflict", `409 Conflict: Apply failed with 1 conflict: conflict with "one": .spec.replicas`, e.errorText(err))
			cm := configMap("a", map[string]any{"k": "v"})
			_, err = e.in(configmaps).Apply(e.Ctx, "a", cm, metav1.ApplyOptions{FieldManager: "one"})
			e.fact("ConfigMap", "OK", e.errorText(err))
			empty, err := e.in(configmaps).Apply(e.Ctx, "a", configMap("a", nil), metav1.ApplyOptions{FieldManager: "one"})
			require.NoError(e, err)
			e.fact("emptied", nil, field(empty, "data", "k"))
		}},
	}
}

func managers() []testCase {
	return []testCase{
		{"managed-fields", "every write records the managers of its fields", func(e *env) {
			w := e.widgets()
			_, err := w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(1)}), metav1.CreateOptions{FieldManager: "creator"})
			require.NoError(e, err)
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"color":"red"},"metadata":{"labels":{"l":"v"}}}`), metav1.PatchOptions{FieldManager: "patcher"})
			require.NoError(e, err)
			after, err := w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"status":{"ready":true}}`), metav1.PatchOptions{FieldManager: "statuser"}, "status")
			require.NoError(e, err)
			e.fact("managers", []string{"creator Update ", "patcher Update ", "statuser Update status"}, managersOf(after))
			e.fact("creator", `{"f:spec":{".":{},"f:mode":{},"f:size":{}}}`, fieldsOf(after, "creator"))
			e.fact("patcher", `{"f:metadata":{"f:labels":{".":{},"f:l":{}}},"f:spec":{"f:color":{}}}`, fieldsOf(after, "patcher"))
			e.fact("statuser", `{"f:status":{".":{},"f:ready":{}}}`, fieldsOf(after, "statuser"))
			after, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"size":2}}`), metav1.PatchOptions{})
			require.NoError(e, err)
			e.fact("the user agent names who gives no name", []string{"conformance Update ", "creator Update ", "patcher Update ", "statuser Update status"}, managersOf(after))
			e.fact("a changed field changes hands", `{"f:spec":{".":{},"f:mode":{}}}`, fieldsOf(after, "creator"))
		}},
		{"managed-fields-edited", "an update may rewrite managedFields, and an empty list resets them", func(e *env) {
			w := e.widgets()
			made, err := w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(1), "color": "red"}), metav1.CreateOptions{FieldManager: "creator"})
			require.NoError(e, err)
			entry := made.GetManagedFields()[0]
			mine, theirs := entry, entry
			mine.FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:size":{}}}`)
			theirs.Manager, theirs.Operation = "kubectl", metav1.ManagedFieldsOperationApply
			theirs.FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:color":{}}}`)
			made.SetManagedFields([]metav1.ManagedFieldsEntry{mine, theirs})
			after, err := w.Update(e.Ctx, made, metav1.UpdateOptions{FieldManager: "creator"})
			require.NoError(e, err)
			e.fact("kubectl", `{"f:spec":{"f:color":{}}}`, fieldsOf(after, "kubectl"))
			changed, err := w.Apply(e.Ctx, "a", e.widget("a", map[string]any{"color": "blue"}), metav1.ApplyOptions{FieldManager: "kubectl"})
			e.fact("its apply has no conflict", "OK", e.errorText(err))
			dropped, err := w.Apply(e.Ctx, "a", e.widget("a", nil), metav1.ApplyOptions{FieldManager: "kubectl"})
			require.NoError(e, err)
			e.fact("before", "blue", field(changed, "spec", "color"))
			e.fact("dropped", nil, field(dropped, "spec", "color"))
			reset, err := w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`), metav1.PatchOptions{})
			require.NoError(e, err)
			e.fact("reset", 0, len(reset.GetManagedFields()))
		}},
		{"managed-fields-builtin", "built-in objects are tracked too", func(e *env) {
			made, err := e.in(secrets).Create(e.Ctx, &unstructured.Unstructured{Object: parse(`{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: v}}`)}, metav1.CreateOptions{FieldManager: "m"})
			require.NoError(e, err)
			e.fact("managers", []string{"m Update "}, managersOf(made))
			e.fact("fields", `{"f:data":{".":{},"f:k":{}},"f:type":{}}`, fieldsOf(made, "m"))
		}},
	}
}

// managersOf returns manager, operation and subresource of each entry, sorted.
func managersOf(o *unstructured.Unstructured) []string {
	var found []string
	for _, m := range o.GetManagedFields() {
		found = append(found, m.Manager+" "+string(m.Operation)+" "+m.Subresource)
	}
	slices.Sort(found)
	return found
}

// fieldsOf returns the fields, as JSON, in the first entry of manager, or "" without an entry.
func fieldsOf(o *unstructured.Unstructured, manager string) string {
	for _, m := range o.GetManagedFields() {
		if m.Manager == manager {
			return m.FieldsV1.GetRawString()
		}
	}
	return ""
}
