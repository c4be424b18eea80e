// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func patches() []testCase {
	return []testCase{
		{"patch-merge", "a merge patch sets, replaces lists and removes with null", func(e *env) {
			w := e.widgets()
			_, err := w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(1), "list": []any{"x", "y"}, "free": map[string]any{"k": "v"}}), metav1.CreateOptions{})
			require.NoError(e, err)
			after, err := w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"size":null,"color":"red","list":["z"],"free":{"n":{"deep":1}}}}`), metav1.PatchOptions{})
			require.NoError(e, err)
			e.fact("spec", map[string]any{"color": "red", "list": []any{"z"}, "mode": "auto", "free": map[string]any{"k": "v", "n": map[string]any{"deep": int64(1)}}}, after.Object["spec"])
			_, err = w.Patch(e.Ctx, "missing", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
			e.fact("missing", `404 NotFound: widgets.GROUP "missing" not found`, e.errorText(err))
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"metadata":{"resourceVersion":"1"}}`), metav1.PatchOptions{})
			e.fact("stale", `409 Conflict: Operation cannot be fulfilled on widgets.GROUP "a": `+modified, e.errorText(err))
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"metadata":{"name":"b"}}`), metav1.PatchOptions{})
			e.fact("rename", `400 BadRequest: the name of the object (b) does not match the name on the URL (a)`, e.errorText(err))
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{broken`), metav1.PatchOptions{})
			e.fact("malformed", "400 BadRequest", codeAndReason(err))
		}},
		{"patch-json", "a JSON patch with all its operations", func(e *env) {
			w := e.widgets()
			_, err := w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(1), "list": []any{"x", "y"}}), metav1.CreateOptions{})
			require.NoError(e, err)
			patch := `[
				{"op":"test","path":"/spec/size","value":1},
				{"op":"replace","path":"/spec/size","value":2},
				{"op":"add","path":"/spec/list/1","value":"m"},
				{"op":"add","path":"/spec/list/-","value":"end"},
				{"op":"remove","path":"/spec/list/0"},
				{"op":"copy","from":"/spec/list/0","path":"/spec/owner"},
				{"op":"add","path":"/metadata/labels","value":{"a~b/c":"1"}},
				{"op":"replace","path":"/metadata/labels/a~0b~1c","value":"2"},
				{"op":"remove","path":"/metadata/labels"}
			]`
			after, err := w.Patch(e.Ctx, "a", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
			require.NoError(e, err)
			e.fact("spec", map[string]any{"size": int64(2), "list": []any{"m", "y", "end"}, "owner": "m", "mode": "auto"}, after.Object["spec"])
			for name, bad := range map[string]string{
				"failed test":    `[{"op":"test","path":"/spec/size","value":7}]`,
				"remove missing": `[{"op":"remove","path":"/spec/color"}]`,
				"move missing":   `[{"op":"move","from":"/spec/color","path":"/spec/owner"}]`,
				"unknown op":     `[{"op":"swap","path":"/spec/color"}]`,
				"bad index":      `[{"op":"add","path":"/spec/list/9","value":"z"}]`,
				"missing parent": `[{"op":"add","path":"/spec/none/x","value":1}]`,
			} {
				_, err = w.Patch(e.Ctx, "a", types.JSONPatchType, []byte(bad), metav1.PatchOptions{})
				e.fact(name, "422 Invalid", codeAndReason(err))
			}
			for name, good := range map[string]string{
				"replace of a missing field adds it": `[{"op":"replace","path":"/spec/color","value":"red"}]`,
				"test for absence":                   `[{"op":"test","path":"/spec/nullable","value":null}]`,
				"negative index":                     `[{"op":"remove","path":"/spec/list/-1"}]`,
			} {
				_, err = w.Patch(e.Ctx, "a", types.JSONPatchType, []byte(good), metav1.PatchOptions{})
				e.fact(name, "OK", codeAndReason(err))
			}
			_, err = w.Patch(e.Ctx, "a", types.JSONPatchType, []byte(`{"op":"add"}`), metav1.PatchOptions{})
			e.fact("no list", "400 BadRequest", codeAndReason(err))
		}},
		{"patch-strategic", "a strategic merge patch merges lists of built-in types by key; custom types have none", func(e *env) {
			d := e.in(deployments)
			_, err := d.Create(e.Ctx, deployment("a"), metav1.CreateOptions{})
			require.NoError(e, err)
			after, err := d.Patch(e.Ctx, "a", types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.org/app:2"},{"name":"side","image":"example.org/side:1"}]}}}}`), metav1.PatchOptions{})
			require.NoError(e, err)
			containers := field(after, "spec", "template", "spec", "containers").([]any)
			var images []string
			for _, c := range containers {
				images = append(images, text(c.(map[string]any)["image"]))
			}
			e.fact("containers", []string{"example.org/app:2", "example.org/side:1"}, images)
			w := e.widgets()
			_, err = w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			_, err = w.Patch(e.Ctx, "a", types.StrategicMergePatchType, []byte(`{"spec":{"size":1}}`), metav1.PatchOptions{})
			e.fact("custom type", "415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml", e.errorText(err))
		}},
		{"patch-options", "force is valid for apply only", func(e *env) {
			w := e.widgets()
			_, err := w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			force := true
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{Force: &force})
			e.fact("answer", `422 Invalid: PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch`, e.errorText(err))
		}},
	}
}
