// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func schemas() []testCase {
	return []testCase{
		{"schema-validation", "objects are validated against the schema", func(e *env) {
			w := e.widgets()
			for name, entry := range map[string]struct {
				spec map[string]any
				said string
			}{
				"type":          {map[string]any{"size": "big"}, `422 Invalid: Widget.GROUP "a" is invalid: [spec.size: Invalid value: "string": spec.size in body must be of type integer: "string", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`},
				"minimum":       {map[string]any{"size": int64(-1)}, `422 Invalid: Widget.GROUP "a" is invalid: spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0`},
				"enum":          {map[string]any{"color": "pink"}, `422 Invalid: Widget.GROUP "a" is invalid: [spec.color: Unsupported value: "pink": supported values: "red", "green", "blue", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`},
				"required":      {map[string]any{"ports": []any{map[string]any{"port": int64(1)}}}, `422 Invalid: Widget.GROUP "a" is invalid: [spec.ports[0].name: Required value, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`},
				"set":           {map[string]any{"tags": []any{"x", "x"}}, `422 Invalid: Widget.GROUP "a" is invalid: spec.tags[1]: Duplicate value: "x"`},
				"map":           {map[string]any{"ports": []any{map[string]any{"name": "x"}, map[string]any{"name": "x"}}}, `422 Invalid: Widget.GROUP "a" is invalid: spec.ports[1]: Duplicate value: {"name":"x"}`},
				"int or string": {map[string]any{"amount": true}, `422 Invalid: Widget.GROUP "a" is invalid: [spec.amount: Invalid value: "boolean": spec.amount in body must be of type integer,string: "boolean", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`},
			} {
				_, err := w.Create(e.Ctx, e.widget("a", entry.spec), metav1.CreateOptions{})
				e.fact(name, entry.said, e.errorText(err))
			}
		}},
		{"schema-defaults", "defaults are set at writes and after removals", func(e *env) {
			w := e.widgets()
			made, err := w.Create(e.Ctx, e.widget("a", map[string]any{"ports": []any{map[string]any{"name": "x"}}}), metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("spec", map[string]any{"mode": "auto", "ports": []any{map[string]any{"name": "x", "protocol": "TCP"}}}, made.Object["spec"])
			after, err := w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"mode":null}}`), metav1.PatchOptions{})
			require.NoError(e, err)
			e.fact("after removal", "auto", field(after, "spec", "mode"))
			none, err := w.Create(e.Ctx, e.widget("b", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("no spec, no defaults in it", nil, none.Object["spec"])
		}},
		{"schema-pruning", "unknown fields are dropped, except where the schema preserves them", func(e *env) {
			w := e.widgets()
			o := e.widget("a", map[string]any{"unknown": "x", "free": map[string]any{"any": map[string]any{"thing": "y"}}, "nullable": nil, "size": nil})
			o.Object["other"] = "z"
			made, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("spec", map[string]any{"mode": "auto", "nullable": nil, "free": map[string]any{"any": map[string]any{"thing": "y"}}}, made.Object["spec"])
			e.fact("root", nil, made.Object["other"])
		}},
		{"schema-unknown-fields", "fieldValidation determines the effect of unknown and duplicate fields", func(e *env) {
			e.widgets()
			body := `{"apiVersion":"` + e.Group + `/v1","kind":"Widget","metadata":{"name":"NAME"},"spec":{"size":1,"size":2,"unknown":3}}`
			named := func(name string) string { return replace(body, "NAME", name) }
			reply := e.do("POST", e.path("")+"?fieldValidation=Strict", named("strict"))
			e.fact("Strict", 400, reply.Code)
			e.fact("Strict says", `Widget in version "v1" cannot be handled as a Widget: strict decoding error: duplicate field "spec.size", unknown field "spec.unknown"`, text(reply.Body["message"]))
			reply = e.do("POST", e.path("")+"?fieldValidation=Warn", named("warn"))
			e.fact("Warn", 201, reply.Code)
			e.fact("Warn says", []string{`299 - "duplicate field \"spec.size\""`, `299 - "unknown field \"spec.unknown\""`}, warnings(reply))
			reply = e.do("POST", e.path("")+"?fieldValidation=Ignore", named("ignore"))
			e.fact("Ignore", 201, reply.Code)
			e.fact("Ignore says", []string{}, warnings(reply))
			reply = e.do("POST", e.path(""), named("unset"))
			e.fact("unset warns", 2, len(warnings(reply)))
			reply = e.do("POST", e.path("")+"?fieldValidation=Maybe", named("bad"))
			e.fact("other", 422, reply.Code)
			reply = e.do("PATCH", e.path("warn")+"?fieldValidation=Strict", `{"spec":{"nonsense":1}}`, "Content-Type", "application/merge-patch+json")
			e.fact("Strict patch", 422, reply.Code)
			reply = e.do("POST", "/api/v1/namespaces/"+e.Namespace+"/configmaps?fieldValidation=Strict", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"date":{"k":"v"}}`)
			e.fact("built-in Strict", 400, reply.Code)
			e.fact("built-in says", `ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "date"`, text(reply.Body["message"]))
		}},
		{"schema-finalizer-warning", "a finalizer without a domain causes a warning", func(e *env) {
			e.widgets()
			o := e.widget("a", nil)
			o.SetFinalizers([]string{"hold"})
			reply := e.do("POST", e.path(""), o.Object)
			e.fact("code", 201, reply.Code)
			e.fact("warning", []string{`299 - "metadata.finalizers: \"hold\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"`}, warnings(reply))
			reply = e.do("PATCH", e.path("a"), `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
			e.fact("removed", 200, reply.Code)
		}},
	}
}

func rules() []testCase {
	return []testCase{
		{"cel-rules", "CEL rules apply to creations and updates", func(e *env) {
			w := e.widgets()
			_, err := w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(101)}), metav1.CreateOptions{})
			e.fact("create", `422 Invalid: Widget.GROUP "a" is invalid: spec: Invalid value: size is at most 100`, e.errorText(err))
			_, err = w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(100), "owner": "me"}), metav1.CreateOptions{})
			require.NoError(e, err)
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"owner":"you"}}`), metav1.PatchOptions{})
			e.fact("transition", `422 Invalid: Widget.GROUP "a" is invalid: spec: Invalid value: owner is immutable`, e.errorText(err))
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"owner":null}}`), metav1.PatchOptions{})
			e.fact("removal", `422 Invalid: Widget.GROUP "a" is invalid: spec: Invalid value: owner is immutable`, e.errorText(err))
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"color":"red"}}`), metav1.PatchOptions{})
			e.fact("other field", "OK", e.errorText(err))
			_, err = w.Apply(e.Ctx, "a", e.widget("a", map[string]any{"owner": "you"}), metav1.ApplyOptions{FieldManager: "m", Force: true})
			e.fact("apply", `422 Invalid: Widget.GROUP "a" is invalid: spec: Invalid value: owner is immutable`, e.errorText(err))
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":null}`), metav1.PatchOptions{})
			e.fact("a rule on a removed field does not run", "OK", e.errorText(err))
		}},
		{"cel-ratcheting", "a rule that an unchanged field already violates does not block an update", func(e *env) {
			w := e.widgets(func(crd map[string]any) { delete(specSchema(crd), "x-kubernetes-validations") })
			_, err := w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(500)}), metav1.CreateOptions{})
			require.NoError(e, err)
			crd, err := e.Dynamic.Resource(crds).Get(e.Ctx, "widgets."+e.Group, metav1.GetOptions{})
			require.NoError(e, err)
			specSchema(crd.Object)["x-kubernetes-validations"] = []any{map[string]any{"rule": "!has(self.size) || self.size <= 100", "message": "too big"}}
			_, err = e.Dynamic.Resource(crds).Update(e.Ctx, crd, metav1.UpdateOptions{})
			require.NoError(e, err)
			e.until("the rule is in effect", func() bool {
				_, err := w.Create(e.Ctx, e.widget("b", map[string]any{"size": int64(500)}), metav1.CreateOptions{DryRun: []string{"All"}})
				return codeAndReason(err) == "422 Invalid"
			})
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			e.fact("labels", "OK", e.errorText(err))
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"color":"red"}}`), metav1.PatchOptions{})
			e.fact("spec", `422 Invalid: Widget.GROUP "a" is invalid: spec: Invalid value: too big`, e.errorText(err))
		}},
	}
}

// warnings returns the warning headers of a reply, sorted.
func warnings(r answer) []string {
	found := slices.Clone(r.Header.Values("Warning"))
	slices.Sort(found)
	if found == nil {
		return []string{}
	}
	return found
}
