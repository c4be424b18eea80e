// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func schemas() []Case {
	return []Case{
		{"schema-validation", "objects are validated against the schema", func(e *Env) {
			w := e.Widgets()
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
				_, err := w.Create(e.Ctx, e.Widget("a", entry.spec), metav1.CreateOptions{})
				e.Fact(name, entry.said, e.Said(err))
			}
		}},
		{"schema-defaults", "defaults are set at writes and after removals", func(e *Env) {
			w := e.Widgets()
			made, err := w.Create(e.Ctx, e.Widget("a", map[string]any{"ports": []any{map[string]any{"name": "x"}}}), metav1.CreateOptions{})
			require.NoError(e, err)
			e.Fact("spec", map[string]any{"mode": "auto", "ports": []any{map[string]any{"name": "x", "protocol": "TCP"}}}, made.Object["spec"])
			after, err := w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"mode":null}}`), metav1.PatchOptions{})
			require.NoError(e, err)
			e.Fact("after removal", "auto", field(after, "spec", "mode"))
			none, err := w.Create(e.Ctx, e.Widget("b", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			e.Fact("no spec, no defaults in it", nil, none.Object["spec"])
		}},
		{"schema-pruning", "unknown fields are dropped, except where the schema preserves them", func(e *Env) {
			w := e.Widgets()
			o := e.Widget("a", map[string]any{"unknown": "x", "free": map[string]any{"any": map[string]any{"thing": "y"}}, "nullable": nil, "size": nil})
			o.Object["other"] = "z"
			made, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			e.Fact("spec", map[string]any{"mode": "auto", "nullable": nil, "free": map[string]any{"any": map[string]any{"thing": "y"}}}, made.Object["spec"])
			e.Fact("root", nil, made.Object["other"])
		}},
		{"schema-unknown-fields", "fieldValidation determines the effect of unknown and duplicate fields", func(e *Env) {
			e.Widgets()
			body := `{"apiVersion":"` + e.Group + `/v1","kind":"Widget","metadata":{"name":"NAME"},"spec":{"size":1,"size":2,"unknown":3}}`
			named := func(name string) string { return replace(body, "NAME", name) }
			reply := e.Do("POST", e.Path("")+"?fieldValidation=Strict", named("strict"))
			e.Fact("Strict", 400, reply.Code)
			e.Fact("Strict says", `Widget in version "v1" cannot be handled as a Widget: strict decoding error: duplicate field "spec.size", unknown field "spec.unknown"`, text(reply.Body["message"]))
			reply = e.Do("POST", e.Path("")+"?fieldValidation=Warn", named("warn"))
			e.Fact("Warn", 201, reply.Code)
			e.Fact("Warn says", []string{`299 - "duplicate field \"spec.size\""`, `299 - "unknown field \"spec.unknown\""`}, warnings(reply))
			reply = e.Do("POST", e.Path("")+"?fieldValidation=Ignore", named("ignore"))
			e.Fact("Ignore", 201, reply.Code)
			e.Fact("Ignore says", []string{}, warnings(reply))
			reply = e.Do("POST", e.Path(""), named("unset"))
			e.Fact("unset warns", 2, len(warnings(reply)))
			reply = e.Do("POST", e.Path("")+"?fieldValidation=Maybe", named("bad"))
			e.Fact("other", 422, reply.Code)
			reply = e.Do("PATCH", e.Path("warn")+"?fieldValidation=Strict", `{"spec":{"nonsense":1}}`, "Content-Type", "application/merge-patch+json")
			e.Fact("Strict patch", 422, reply.Code)
			reply = e.Do("POST", "/api/v1/namespaces/"+e.Namespace+"/configmaps?fieldValidation=Strict", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"date":{"k":"v"}}`)
			e.Fact("built-in Strict", 400, reply.Code)
			e.Fact("built-in says", `ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "date"`, text(reply.Body["message"]))
		}},
		{"schema-finalizer-warning", "a finalizer without a domain causes a warning", func(e *Env) {
			e.Widgets()
			o := e.Widget("a", nil)
			o.SetFinalizers([]string{"hold"})
			reply := e.Do("POST", e.Path(""), o.Object)
			e.Fact("code", 201, reply.Code)
			e.Fact("warning", []string{`299 - "metadata.finalizers: \"hold\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"`}, warnings(reply))
			reply = e.Do("PATCH", e.Path("a"), `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
			e.Fact("removed", 200, reply.Code)
		}},
	}
}

func rules() []Case {
	return []Case{
		{"cel-rules", "CEL rules apply to creations and updates", func(e *Env) {
			w := e.Widgets()
			_, err := w.Create(e.Ctx, e.Widget("a", map[string]any{"size": int64(101)}), metav1.CreateOptions{})
			e.Fact("create", `422 Invalid: Widget.GROUP "a" is invalid: spec: Invalid value: size is at most 100`, e.Said(err))
			_, err = w.Create(e.Ctx, e.Widget("a", map[string]any{"size": int64(100), "owner": "me"}), metav1.CreateOptions{})
			require.NoError(e, err)
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"owner":"you"}}`), metav1.PatchOptions{})
			e.Fact("transition", `422 Invalid: Widget.GROUP "a" is invalid: spec: Invalid value: owner is immutable`, e.Said(err))
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"owner":null}}`), metav1.PatchOptions{})
			e.Fact("removal", `422 Invalid: Widget.GROUP "a" is invalid: spec: Invalid value: owner is immutable`, e.Said(err))
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"color":"red"}}`), metav1.PatchOptions{})
			e.Fact("other field", "OK", e.Said(err))
			_, err = w.Apply(e.Ctx, "a", e.Widget("a", map[string]any{"owner": "you"}), metav1.ApplyOptions{FieldManager: "m", Force: true})
			e.Fact("apply", `422 Invalid: Widget.GROUP "a" is invalid: spec: Invalid value: owner is immutable`, e.Said(err))
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":null}`), metav1.PatchOptions{})
			e.Fact("a rule on a removed field does not run", "OK", e.Said(err))
		}},
		{"cel-ratcheting", "a rule that an unchanged field already violates does not block an update", func(e *Env) {
			w := e.Widgets(func(crd map[string]any) { delete(specSchema(crd), "x-kubernetes-validations") })
			_, err := w.Create(e.Ctx, e.Widget("a", map[string]any{"size": int64(500)}), metav1.CreateOptions{})
			require.NoError(e, err)
			crd, err := e.Dynamic.Resource(crds).Get(e.Ctx, "widgets."+e.Group, metav1.GetOptions{})
			require.NoError(e, err)
			specSchema(crd.Object)["x-kubernetes-validations"] = []any{map[string]any{"rule": "!has(self.size) || self.size <= 100", "message": "too big"}}
			_, err = e.Dynamic.Resource(crds).Update(e.Ctx, crd, metav1.UpdateOptions{})
			require.NoError(e, err)
			e.Until("the rule is in force", func() bool {
				_, err := w.Create(e.Ctx, e.Widget("b", map[string]any{"size": int64(500)}), metav1.CreateOptions{DryRun: []string{"All"}})
				return codeAndReason(err) == "422 Invalid"
			})
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			e.Fact("labels", "OK", e.Said(err))
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"color":"red"}}`), metav1.PatchOptions{})
			e.Fact("spec", `422 Invalid: Widget.GROUP "a" is invalid: spec: Invalid value: too big`, e.Said(err))
		}},
	}
}

// warnings returns the warning headers of a reply, sorted.
func warnings(r Reply) []string {
	found := slices.Clone(r.Header.Values("Warning"))
	slices.Sort(found)
	if found == nil {
		return []string{}
	}
	return found
}
