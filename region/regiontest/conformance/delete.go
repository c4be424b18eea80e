// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"strings"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func deletion() []testCase {
	return []testCase{
		{"delete-answers", "a deletion returns a Status, or the object while finalizers keep it", func(e *env) {
			w := e.widgets()
			made, err := w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			reply := e.do("DELETE", e.path("a"), nil)
			e.fact("code", 200, reply.Code)
			e.fact("body", map[string]any{
				"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Success",
				"details": map[string]any{"name": "a", "group": e.Group, "kind": "widgets", "uid": string(made.GetUID())},
			}, reply.Body)
			reply = e.do("DELETE", e.path("a"), nil)
			e.fact("again", 404, reply.Code)
			e.fact("again message", `widgets.GROUP "a" not found`, e.plain(text(reply.Body["message"])))
		}},
		{"delete-preconditions", "uid and resourceVersion are preconditions", func(e *env) {
			w := e.widgets()
			made, err := w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			uid, version := types.UID("00000000-0000-0000-0000-000000000000"), "1"
			err = w.Delete(e.Ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			e.fact("uid", `409 Conflict: Operation cannot be fulfilled on Widget.GROUP "a": the UID in the precondition (00000000-0000-0000-0000-000000000000) does not match the UID in record (UID). The object might have been deleted and then recreated`, strings.ReplaceAll(e.errorText(err), string(made.GetUID()), "UID"))
			err = w.Delete(e.Ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
			e.fact("resourceVersion", `409 Conflict: Operation cannot be fulfilled on Widget.GROUP "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (RV). The object might have been modified`, strings.ReplaceAll(e.errorText(err), made.GetResourceVersion(), "RV"))
			uid, version = made.GetUID(), made.GetResourceVersion()
			err = w.Delete(e.Ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
			e.fact("both right", "OK", e.errorText(err))
			err = w.Delete(e.Ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			e.fact("missing", `404 NotFound: widgets.GROUP "a" not found`, e.errorText(err))
		}},
		{"delete-metadata-client", "the preconditions of the metadata client's deletion, in protobuf, apply", func(e *env) {
			w := e.widgets()
			made, err := w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			m := e.Metadata.Resource(e.gvr()).Namespace(e.Namespace)
			uid := types.UID("00000000-0000-0000-0000-000000000000")
			err = m.Delete(e.Ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			e.fact("uid", true, strings.HasPrefix(e.errorText(err), "409 Conflict"))
			uid = made.GetUID()
			err = m.Delete(e.Ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			e.fact("right", "OK", e.errorText(err))
		}},
		{"delete-finalizers", "an object with finalizers is marked, and removed with the last of them", func(e *env) {
			w := e.widgets()
			o := e.widget("a", nil)
			o.SetFinalizers([]string{"example.org/one", "example.org/two"})
			made, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			reply := e.do("DELETE", e.path("a"), nil)
			e.fact("code", 200, reply.Code)
			e.fact("answers with the object", "Widget", reply.Body["kind"])
			marked, err := w.Get(e.Ctx, "a", metav1.GetOptions{})
			require.NoError(e, err)
			e.fact("deletionTimestamp", true, marked.GetDeletionTimestamp() != nil)
			e.fact("deletionGracePeriodSeconds", int64(0), field(marked, "metadata", "deletionGracePeriodSeconds"))
			e.fact("generation", made.GetGeneration()+1, marked.GetGeneration())
			e.fact("finalizers stay", []string{"example.org/one", "example.org/two"}, marked.GetFinalizers())
			require.NoError(e, w.Delete(e.Ctx, "a", metav1.DeleteOptions{}))
			again, err := w.Get(e.Ctx, "a", metav1.GetOptions{})
			require.NoError(e, err)
			e.fact("a second deletion changes nothing", marked.GetResourceVersion(), again.GetResourceVersion())

			more := marked.DeepCopy()
			more.SetFinalizers([]string{"example.org/one", "example.org/two", "example.org/three"})
			_, err = w.Update(e.Ctx, more, metav1.UpdateOptions{})
			e.fact("no finalizer is added", `422 Invalid: Widget.GROUP "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.org/three"}`, e.errorText(err))
			labeled := marked.DeepCopy()
			labeled.SetLabels(map[string]string{"still": "editable"})
			labeled.SetFinalizers([]string{"example.org/two"})
			less, err := w.Update(e.Ctx, labeled, metav1.UpdateOptions{})
			require.NoError(e, err)
			e.fact("one goes", []string{"example.org/two"}, less.GetFinalizers())
			less.SetFinalizers(nil)
			last, err := w.Update(e.Ctx, less, metav1.UpdateOptions{})
			require.NoError(e, err)
			e.fact("the last update answers with the object", less.GetUID(), last.GetUID())
			e.fact("without finalizers", 0, len(last.GetFinalizers()))
			_, err = w.Get(e.Ctx, "a", metav1.GetOptions{})
			e.fact("gone", `404 NotFound: widgets.GROUP "a" not found`, e.errorText(err))
		}},
		{"delete-finalizers-by-patch", "a patch, a JSON patch or an apply may remove the last finalizer", func(e *env) {
			w := e.widgets()
			for name, kind := range map[string]types.PatchType{"merge": types.MergePatchType, "json": types.JSONPatchType} {
				o := e.widget(name, nil)
				o.SetFinalizers([]string{"example.org/one"})
				_, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
				require.NoError(e, err)
				require.NoError(e, w.Delete(e.Ctx, name, metav1.DeleteOptions{}))
				patch := `{"metadata":{"finalizers":null}}`
				if kind == types.JSONPatchType {
					patch = `[{"op":"remove","path":"/metadata/finalizers"}]`
				}
				_, err = w.Patch(e.Ctx, name, kind, []byte(patch), metav1.PatchOptions{})
				e.fact(name+" patch", "OK", e.errorText(err))
				_, err = w.Get(e.Ctx, name, metav1.GetOptions{})
				e.fact(name+" gone", `404 NotFound: widgets.GROUP "`+name+`" not found`, e.errorText(err))
			}
			o := e.widget("apply", nil)
			o.SetFinalizers([]string{"example.org/one"})
			_, err := w.Apply(e.Ctx, "apply", o, metav1.ApplyOptions{FieldManager: "m"})
			require.NoError(e, err)
			require.NoError(e, w.Delete(e.Ctx, "apply", metav1.DeleteOptions{}))
			_, err = w.Apply(e.Ctx, "apply", e.widget("apply", nil), metav1.ApplyOptions{FieldManager: "m"})
			e.fact("apply", "OK", e.errorText(err))
			_, err = w.Get(e.Ctx, "apply", metav1.GetOptions{})
			e.fact("apply gone", `404 NotFound: widgets.GROUP "apply" not found`, e.errorText(err))
		}},
		{"delete-collection", "deletecollection deletes the objects that a selector matches", func(e *env) {
			w := e.widgets()
			for _, name := range []string{"a", "b", "c"} {
				o := e.widget(name, nil)
				if name != "c" {
					o.SetLabels(map[string]string{"go": "yes"})
				}
				_, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
				require.NoError(e, err)
			}
			reply := e.do("DELETE", e.path("")+"?labelSelector=go%3Dyes", nil)
			e.fact("code", 200, reply.Code)
			e.fact("answers with the list", "WidgetList", reply.Body["kind"])
			left, err := w.List(e.Ctx, metav1.ListOptions{})
			require.NoError(e, err)
			e.fact("left", []string{"c"}, names(left))
		}},
		{"delete-propagation", "propagation policies add finalizers for a garbage collector", func(e *env) {
			w := e.widgets()
			_, err := w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			background := metav1.DeletePropagationBackground
			require.NoError(e, w.Delete(e.Ctx, "a", metav1.DeleteOptions{PropagationPolicy: &background}))
			_, err = w.Get(e.Ctx, "a", metav1.GetOptions{})
			e.fact("background", `404 NotFound: widgets.GROUP "a" not found`, e.errorText(err))
			_, err = w.Create(e.Ctx, e.widget("b", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			foreground := metav1.DeletePropagationForeground
			require.NoError(e, w.Delete(e.Ctx, "b", metav1.DeleteOptions{PropagationPolicy: &foreground}))
			held, err := w.Get(e.Ctx, "b", metav1.GetOptions{})
			e.fact("foreground", "OK", e.errorText(err))
			if err == nil {
				e.release(w, held.GetName())
			}
			bad := metav1.DeletionPropagation("Sideways")
			err = w.Delete(e.Ctx, "b", metav1.DeleteOptions{PropagationPolicy: &bad})
			e.fact("unknown policy", `422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"`, e.errorText(err))
		}},
		{"delete-returned-objects", "for some built-in types a deletion returns the deleted object", func(e *env) {
			_, err := e.in(configmaps).Create(e.Ctx, configMap("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			reply := e.do("DELETE", "/api/v1/namespaces/"+e.Namespace+"/configmaps/a", nil)
			e.fact("ConfigMap", "Status", reply.Body["kind"])
			_, err = e.in(schemaOf("", "v1", "serviceaccounts")).Create(e.Ctx, object("v1", "ServiceAccount", "a"), metav1.CreateOptions{})
			require.NoError(e, err)
			reply = e.do("DELETE", "/api/v1/namespaces/"+e.Namespace+"/serviceaccounts/a", nil)
			e.fact("ServiceAccount", "ServiceAccount", reply.Body["kind"])
		}},
	}
}

// names returns the names in a list, in its order.
func names(list *unstructured.UnstructuredList) []string {
	found := make([]string, 0, len(list.Items))
	for _, o := range list.Items {
		found = append(found, o.GetName())
	}
	return found
}
