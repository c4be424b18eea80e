// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func definitions() []testCase {
	return []testCase{
		{"crd-established", "a CRD is accepted, established and served", func(e *env) {
			e.widgets()
			crd, err := e.Dynamic.Resource(crds).Get(e.Ctx, "widgets."+e.Group, metav1.GetOptions{})
			require.NoError(e, err)
			e.fact("NamesAccepted", "True NoConflicts", condition(crd, "NamesAccepted"))
			e.fact("Established", "True InitialNamesAccepted", condition(crd, "Established"))
			e.fact("acceptedNames", map[string]any{
				"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
				"shortNames": []any{"wd"}, "categories": []any{"conformance"},
			}, field(crd, "status", "acceptedNames"))
			e.fact("storedVersions", []any{"v1"}, field(crd, "status", "storedVersions"))
			e.fact("generation", int64(1), crd.GetGeneration())
			e.fact("listKind defaulted", "WidgetList", field(crd, "spec", "names", "listKind"))
			e.fact("conversion defaulted", "None", field(crd, "spec", "conversion", "strategy"))
		}},
		{"crd-name-conflict", "two types of one group cannot share a kind", func(e *env) {
			e.widgets()
			other := widgetCRD(e.Group)
			other.SetName("gadgets." + e.Group)
			require.NoError(e, unstructured.SetNestedField(other.Object, "gadgets", "spec", "names", "plural"))
			require.NoError(e, unstructured.SetNestedField(other.Object, "gadget", "spec", "names", "singular"))
			_, err := e.Dynamic.Resource(crds).Create(e.Ctx, other, metav1.CreateOptions{})
			require.NoError(e, err)
			var got *unstructured.Unstructured
			e.until("the names are judged", func() bool {
				got, err = e.Dynamic.Resource(crds).Get(e.Ctx, other.GetName(), metav1.GetOptions{})
				return err == nil && condition(got, "NamesAccepted") != ""
			})
			e.fact("NamesAccepted", "False ListKindConflict", condition(got, "NamesAccepted"))
			e.fact("Established", "False NotAccepted", condition(got, "Established"))
			require.NoError(e, e.Dynamic.Resource(crds).Delete(e.Ctx, other.GetName(), metav1.DeleteOptions{}))
		}},
		{"crd-invalid", "an invalid CRD is rejected", func(e *env) {
			for name, change := range map[string]func(crd map[string]any){
				"wrong name":         func(crd map[string]any) { crd["metadata"].(map[string]any)["name"] = "other." + e.Group },
				"no storage version": func(crd map[string]any) { version(crd)["storage"] = false },
				"broken rule": func(crd map[string]any) {
					specSchema(crd)["x-kubernetes-validations"] = []any{map[string]any{"rule": "self.nothing == 1"}}
				},
				"not structural": func(crd map[string]any) {
					delete(specSchema(crd)["properties"].(map[string]any)["size"].(map[string]any), "type")
				},
				"bad default": func(crd map[string]any) {
					specSchema(crd)["properties"].(map[string]any)["mode"].(map[string]any)["default"] = int64(1)
				},
				"bad scope": func(crd map[string]any) { crd["spec"].(map[string]any)["scope"] = "Everywhere" },
			} {
				crd := widgetCRD(e.Group)
				change(crd.Object)
				_, err := e.Dynamic.Resource(crds).Create(e.Ctx, crd, metav1.CreateOptions{})
				e.fact(name, "422 Invalid", codeAndReason(err))
			}
			approved := widgetCRD("x.k8s.io")
			_, err := e.Dynamic.Resource(crds).Create(e.Ctx, approved, metav1.CreateOptions{})
			e.fact("protected group", "422 Invalid", codeAndReason(err))
		}},
		{"crd-changed-schema", "a changed schema takes effect", func(e *env) {
			w := e.widgets()
			_, err := w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(7)}), metav1.CreateOptions{})
			require.NoError(e, err)
			crd, err := e.Dynamic.Resource(crds).Get(e.Ctx, "widgets."+e.Group, metav1.GetOptions{})
			require.NoError(e, err)
			specSchema(crd.Object)["properties"].(map[string]any)["size"].(map[string]any)["maximum"] = int64(5)
			changed, err := e.Dynamic.Resource(crds).Update(e.Ctx, crd, metav1.UpdateOptions{})
			require.NoError(e, err)
			e.fact("generation", int64(2), changed.GetGeneration())
			e.until("the new schema is in effect", func() bool {
				_, err := w.Create(e.Ctx, e.widget("b", map[string]any{"size": int64(7)}), metav1.CreateOptions{DryRun: []string{"All"}})
				return codeAndReason(err) == "422 Invalid"
			})
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			e.fact("what was there may stay", "OK", e.errorText(err))
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"size":8}}`), metav1.PatchOptions{})
			e.fact("what changes must fit", "422 Invalid", codeAndReason(err))
			crd, err = e.Dynamic.Resource(crds).Get(e.Ctx, "widgets."+e.Group, metav1.GetOptions{})
			require.NoError(e, err)
			require.NoError(e, unstructured.SetNestedField(crd.Object, "Cluster", "spec", "scope"))
			_, err = e.Dynamic.Resource(crds).Update(e.Ctx, crd, metav1.UpdateOptions{})
			e.fact("scope is immutable", "422 Invalid", codeAndReason(err))
		}},
		{"crd-deleted", "the objects of a deleted CRD are deleted; the CRD stays until their finalizers are removed", func(e *env) {
			w := e.widgets()
			o := e.widget("a", nil)
			o.SetFinalizers([]string{"example.org/hold"})
			_, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			_, err = w.Create(e.Ctx, e.widget("b", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			require.NoError(e, e.Dynamic.Resource(crds).Delete(e.Ctx, "widgets."+e.Group, metav1.DeleteOptions{}))
			e.until("the objects are being deleted", func() bool {
				list, err := w.List(e.Ctx, metav1.ListOptions{})
				return err == nil && len(list.Items) == 1 && list.Items[0].GetDeletionTimestamp() != nil
			})
			crd, err := e.Dynamic.Resource(crds).Get(e.Ctx, "widgets."+e.Group, metav1.GetOptions{})
			require.NoError(e, err)
			e.fact("finalizer", []string{"customresourcecleanup.apiextensions.k8s.io"}, crd.GetFinalizers())
			e.fact("terminating", true, condition(crd, "Terminating") != "")
			e.release(w, "a")
			e.until("the CRD is gone", func() bool {
				_, err := e.Dynamic.Resource(crds).Get(e.Ctx, "widgets."+e.Group, metav1.GetOptions{})
				return codeAndReason(err) == "404 NotFound"
			})
			e.until("its type is not served", func() bool {
				_, err := w.List(e.Ctx, metav1.ListOptions{})
				return codeAndReason(err) == "404 NotFound"
			})
			_, err = w.List(e.Ctx, metav1.ListOptions{})
			e.fact("answer", "404 NotFound: the server could not find the requested resource", e.errorText(err))
		}},
		{"crd-cluster-scoped", "objects of a cluster-scoped type have no namespace", func(e *env) {
			e.crd(func(crd map[string]any) { crd["spec"].(map[string]any)["scope"] = "Cluster" })
			c := e.Dynamic.Resource(e.gvr())
			made, err := c.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("namespace", "", made.GetNamespace())
			o := e.widget("b", nil)
			o.SetNamespace("default")
			made, err = c.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("a namespace in the body is dropped", "", made.GetNamespace())
			reply := e.do("GET", e.path("a"), nil)
			e.fact("under a namespace", 404, reply.Code)
		}},
		{"crd-versions", "an object is served in every version", func(e *env) {
			w := e.widgets(func(crd map[string]any) {
				spec := crd["spec"].(map[string]any)
				second := widgetCRD(e.Group).Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
				second["name"], second["storage"] = "v1beta1", false
				spec["versions"] = append(spec["versions"].([]any), second)
			})
			_, err := w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(1)}), metav1.CreateOptions{})
			require.NoError(e, err)
			beta := e.Dynamic.Resource(schemaOf(e.Group, "v1beta1", "widgets")).Namespace(e.Namespace)
			got, err := beta.Get(e.Ctx, "a", metav1.GetOptions{})
			require.NoError(e, err)
			e.fact("apiVersion", e.Group+"/v1beta1", got.GetAPIVersion())
			require.NoError(e, unstructured.SetNestedField(got.Object, int64(2), "spec", "size"))
			got, err = beta.Update(e.Ctx, got, metav1.UpdateOptions{})
			require.NoError(e, err)
			back, err := w.Get(e.Ctx, "a", metav1.GetOptions{})
			require.NoError(e, err)
			e.fact("written", int64(2), field(back, "spec", "size"))
			e.fact("back", e.Group+"/v1", back.GetAPIVersion())
			list, err := beta.List(e.Ctx, metav1.ListOptions{})
			require.NoError(e, err)
			e.fact("in lists", e.Group+"/v1beta1", list.Items[0].GetAPIVersion())
			e.fact("one resourceVersion", back.GetResourceVersion(), got.GetResourceVersion())
		}},
	}
}

// condition returns the status and the reason of the condition whose type is kind, or "" if o does
// not have the condition.
func condition(o *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	i := slices.IndexFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == kind })
	if i < 0 {
		return ""
	}
	c := conditions[i].(map[string]any)
	return text(c["status"]) + " " + text(c["reason"])
}
