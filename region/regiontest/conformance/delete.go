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

func deletion() []Case {
	return []Case{
		{"delete-answers", "a deletion returns a Status, or the object while finalizers keep it", func(e *Env) {
			w := e.Widgets()
			made, err := w.Create(e.Ctx, e.Widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			reply := e.Do("DELETE", e.Path("a"), nil)
			e.Fact("code", 200, reply.Code)
			e.Fact("body", map[string]any{
				"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Success",
				"details": map[string]any{"name": "a", "group": e.Group, "kind": "widgets", "uid": string(made.GetUID())},
			}, reply.Body)
			reply = e.Do("DELETE", e.Path("a"), nil)
			e.Fact("again", 404, reply.Code)
			e.Fact("again message", `widgets.GROUP "a" not found`, e.plain(text(reply.Body["message"])))
		}},
		{"delete-preconditions", "uid and resourceVersion are preconditions", func(e *Env) {
			w := e.Widgets()
			made, err := w.Create(e.Ctx, e.Widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			uid, version := types.UID("00000000-0000-0000-0000-000000000000"), "1"
			err = w.Delete(e.Ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			e.Fact("uid", `409 Conflict: Operation cannot be fulfilled on Widget.GROUP "a": the UID in the precondition (00000000-0000-0000-0000-000000000000) does not match the UID in record (UID). The object might have been deleted and then recreated`, strings.ReplaceAll(e.Said(err), string(made.GetUID()), "UID"))
			err = w.Delete(e.Ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
			e.Fact("resourceVersion", `409 Conflict: Operation cannot be fulfilled on Widget.GROUP "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (RV). The object might have been modified`, strings.ReplaceAll(e.Said(err), made.GetResourceVersion(), "RV"))
			uid, version = made.GetUID(), made.GetResourceVersion()
			err = w.Delete(e.Ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
			e.Fact("both right", "OK", e.Said(err))
			err = w.Delete(e.Ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			e.Fact("missing", `404 NotFound: widgets.GROUP "a" not found`, e.Said(err))
		}},
		{"delete-metadata-client", "the preconditions of the metadata client's deletion, in protobuf, apply", func(e *Env) {
			w := e.Widgets()
			made, err := w.Create(e.Ctx, e.Widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			m := e.Metadata.Resource(e.GVR()).Namespace(e.Namespace)
			uid := types.UID("00000000-0000-0000-0000-000000000000")
			err = m.Delete(e.Ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			e.Fact("uid", true, strings.HasPrefix(e.Said(err), "409 Conflict"))
			uid = made.GetUID()
			err = m.Delete(e.Ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			e.Fact("right", "OK", e.Said(err))
		}},
		{"delete-finalizers", "an object with finalizers is marked, and removed with the last of them", func(e *Env) {
			w := e.Widgets()
			o := e.Widget("a", nil)
			o.SetFinalizers([]string{"example.org/one", "example.org/two"})
			made, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			reply := e.Do("DELETE", e.Path("a"), nil)
			e.Fact("code", 200, reply.Code)
			e.Fact("answers with the object", "Widget", reply.Body["kind"])
			marked, err := w.Get(e.Ctx, "a", metav1.GetOptions{})
			require.NoError(e, err)
			e.Fact("deletionTimestamp", true, marked.GetDeletionTimestamp() != nil)
			e.Fact("deletionGracePeriodSeconds", int64(0), field(marked, "metadata", "deletionGracePeriodSeconds"))
			e.Fact("generation", made.GetGeneration()+1, marked.GetGeneration())
			e.Fact("finalizers stay", []string{"example.org/one", "example.org/two"}, marked.GetFinalizers())
			require.NoError(e, w.Delete(e.Ctx, "a", metav1.DeleteOptions{}))
			again, err := w.Get(e.Ctx, "a", metav1.GetOptions{})
			require.NoError(e, err)
			e.Fact("a second deletion changes nothing", marked.GetResourceVersion(), again.GetResourceVersion())

			more := marked.DeepCopy()
			more.SetFinalizers([]string{"example.org/one", "example.org/two", "example.org/three"})
			_, err = w.Update(e.Ctx, more, metav1.UpdateOptions{})
			e.Fact("no finalizer is added", `422 Invalid: Widget.GROUP "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.org/three"}`, e.Said(err))
			labeled := marked.DeepCopy()
			labeled.SetLabels(map[string]string{"still": "editable"})
			labeled.SetFinalizers([]string{"example.org/two"})
			less, err := w.Update(e.Ctx, labeled, metav1.UpdateOptions{})
			require.NoError(e, err)
			e.Fact("one goes", []string{"example.org/two"}, less.GetFinalizers())
			less.SetFinalizers(nil)
			last, err := w.Update(e.Ctx, less, metav1.UpdateOptions{})
			require.NoError(e, err)
			e.Fact("the last update answers with the object", less.GetUID(), last.GetUID())
			e.Fact("without finalizers", 0, len(last.GetFinalizers()))
			_, err = w.Get(e.Ctx, "a", metav1.GetOptions{})
			e.Fact("gone", `404 NotFound: widgets.GROUP "a" not found`, e.Said(err))
		}},
		{"delete-finalizers-by-patch", "a patch, a JSON patch or an apply may remove the last finalizer", func(e *Env) {
			w := e.Widgets()
			for name, kind := range map[string]types.PatchType{"merge": types.MergePatchType, "json": types.JSONPatchType} {
				o := e.Widget(name, nil)
				o.SetFinalizers([]string{"example.org/one"})
				_, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
				require.NoError(e, err)
				require.NoError(e, w.Delete(e.Ctx, name, metav1.DeleteOptions{}))
				patch := `{"metadata":{"finalizers":null}}`
				if kind == types.JSONPatchType {
					patch = `[{"op":"remove","path":"/metadata/finalizers"}]`
				}
				_, err = w.Patch(e.Ctx, name, kind, []byte(patch), metav1.PatchOptions{})
				e.Fact(name+" patch", "OK", e.Said(err))
				_, err = w.Get(e.Ctx, name, metav1.GetOptions{})
				e.Fact(name+" gone", `404 NotFound: widgets.GROUP "`+name+`" not found`, e.Said(err))
			}
			o := e.Widget("apply", nil)
			o.SetFinalizers([]string{"example.org/one"})
			_, err := w.Apply(e.Ctx, "apply", o, metav1.ApplyOptions{FieldManager: "m"})
			require.NoError(e, err)
			require.NoError(e, w.Delete(e.Ctx, "apply", metav1.DeleteOptions{}))
			_, err = w.Apply(e.Ctx, "apply", e.Widget("apply", nil), metav1.ApplyOptions{FieldManager: "m"})
			e.Fact("apply", "OK", e.Said(err))
			_, err = w.Get(e.Ctx, "apply", metav1.GetOptions{})
			e.Fact("apply gone", `404 NotFound: widgets.GROUP "apply" not found`, e.Said(err))
		}},
		{"delete-collection", "deletecollection deletes the objects that a selector matches", func(e *Env) {
			w := e.Widgets()
			for _, name := range []string{"a", "b", "c"} {
				o := e.Widget(name, nil)
				if name != "c" {
					o.SetLabels(map[string]string{"go": "yes"})
				}
				_, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
				require.NoError(e, err)
			}
			reply := e.Do("DELETE", e.Path("")+"?labelSelector=go%3Dyes", nil)
			e.Fact("code", 200, reply.Code)
			e.Fact("answers with the list", "WidgetList", reply.Body["kind"])
			left, err := w.List(e.Ctx, metav1.ListOptions{})
			require.NoError(e, err)
			e.Fact("left", []string{"c"}, names(left))
		}},
		{"delete-propagation", "propagation policies add finalizers for a garbage collector", func(e *Env) {
			w := e.Widgets()
			_, err := w.Create(e.Ctx, e.Widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			background := metav1.DeletePropagationBackground
			require.NoError(e, w.Delete(e.Ctx, "a", metav1.DeleteOptions{PropagationPolicy: &background}))
			_, err = w.Get(e.Ctx, "a", metav1.GetOptions{})
			e.Fact("background", `404 NotFound: widgets.GROUP "a" not found`, e.Said(err))
			_, err = w.Create(e.Ctx, e.Widget("b", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			foreground := metav1.DeletePropagationForeground
			require.NoError(e, w.Delete(e.Ctx, "b", metav1.DeleteOptions{PropagationPolicy: &foreground}))
			held, err := w.Get(e.Ctx, "b", metav1.GetOptions{})
			e.Fact("foreground", "OK", e.Said(err))
			if err == nil {
				e.Release(w, held.GetName())
			}
			bad := metav1.DeletionPropagation("Sideways")
			err = w.Delete(e.Ctx, "b", metav1.DeleteOptions{PropagationPolicy: &bad})
			e.Fact("unknown policy", `422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"`, e.Said(err))
		}},
		{"delete-returned-objects", "for some built-in types a deletion returns the deleted object", func(e *Env) {
			_, err := e.In(configmaps).Create(e.Ctx, configMap("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			reply := e.Do("DELETE", "/api/v1/namespaces/"+e.Namespace+"/configmaps/a", nil)
			e.Fact("ConfigMap", "Status", reply.Body["kind"])
			_, err = e.In(schemaOf("", "v1", "serviceaccounts")).Create(e.Ctx, object("v1", "ServiceAccount", "a"), metav1.CreateOptions{})
			require.NoError(e, err)
			reply = e.Do("DELETE", "/api/v1/namespaces/"+e.Namespace+"/serviceaccounts/a", nil)
			e.Fact("ServiceAccount", "ServiceAccount", reply.Body["kind"])
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
