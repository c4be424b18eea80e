// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func namespaceCases() []testCase {
	return []testCase{
		{"namespace-created", "a new namespace is active, has the finalizer kubernetes and a label with its name", func(e *env) {
			e.in(configmaps)
			ns, err := e.Dynamic.Resource(namespaces).Get(e.Ctx, e.Namespace, metav1.GetOptions{})
			require.NoError(e, err)
			e.fact("phase", "Active", field(ns, "status", "phase"))
			e.fact("finalizers", []any{"kubernetes"}, field(ns, "spec", "finalizers"))
			e.fact("label", e.Namespace, ns.GetLabels()["kubernetes.io/metadata.name"])
			for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
				_, err := e.Dynamic.Resource(namespaces).Get(e.Ctx, name, metav1.GetOptions{})
				e.fact(name, "OK", e.errorText(err))
			}
			err = e.Dynamic.Resource(namespaces).Delete(e.Ctx, "kube-system", metav1.DeleteOptions{})
			e.fact("deleting kube-system", `403 Forbidden: namespaces "kube-system" is forbidden: this namespace may not be deleted`, e.errorText(err))
		}},
		{"namespace-terminating", "a namespace that is being deleted accepts no new objects", func(e *env) {
			w := e.widgets()
			o := e.widget("held", nil)
			o.SetFinalizers([]string{"example.org/hold"})
			_, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			before, err := e.Dynamic.Resource(namespaces).Get(e.Ctx, e.Namespace, metav1.GetOptions{})
			require.NoError(e, err)
			reply := e.do("DELETE", "/api/v1/namespaces/"+e.Namespace, nil)
			e.fact("code", 200, reply.Code)
			e.fact("answers with the namespace", "Namespace", reply.Body["kind"])
			ns, err := e.Dynamic.Resource(namespaces).Get(e.Ctx, e.Namespace, metav1.GetOptions{})
			require.NoError(e, err)
			e.fact("phase", "Terminating", field(ns, "status", "phase"))
			e.fact("deletionTimestamp", true, ns.GetDeletionTimestamp() != nil)
			e.fact("uid", before.GetUID(), ns.GetUID())
			e.until("the server knows", func() bool {
				_, err := w.Create(e.Ctx, e.widget("probe", nil), metav1.CreateOptions{DryRun: []string{"All"}})
				return err != nil
			})
			_, err = w.Create(e.Ctx, e.widget("new", nil), metav1.CreateOptions{})
			e.fact("create", `403 Forbidden: widgets.GROUP "new" is forbidden: unable to create new content in namespace NS because it is being terminated`, e.errorText(err))
			e.fact("cause", []string{"NamespaceTerminating metadata.namespace: namespace NS is being terminated"}, e.causes(err))
			_, err = w.Apply(e.Ctx, "new", e.widget("new", nil), metav1.ApplyOptions{FieldManager: "m"})
			e.fact("apply", "403 Forbidden", codeAndReason(err))
			held, err := w.Get(e.Ctx, "held", metav1.GetOptions{})
			require.NoError(e, err)
			held.SetLabels(map[string]string{"a": "b"})
			_, err = w.Update(e.Ctx, held, metav1.UpdateOptions{})
			e.fact("what is there may change", "OK", e.errorText(err))
			_ = e.Dynamic.Resource(namespaces).Delete(e.Ctx, e.Namespace, metav1.DeleteOptions{})
			e.release(w, "held")
		}},
		{"namespace-content", "a namespace controller deletes the content of a deleted namespace", func(e *env) {
			_, err := e.in(configmaps).Create(e.Ctx, configMap("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			require.NoError(e, e.Dynamic.Resource(namespaces).Delete(e.Ctx, e.Namespace, metav1.DeleteOptions{}))
			_, err = e.in(configmaps).Get(e.Ctx, "a", metav1.GetOptions{})
			e.fact("content right after", "OK", e.errorText(err))
		}},
		{"namespace-finalize", "the finalize subresource ends a namespace", func(e *env) {
			e.in(configmaps)
			e.hold()
			require.NoError(e, e.Dynamic.Resource(namespaces).Delete(e.Ctx, e.Namespace, metav1.DeleteOptions{}))
			ns, err := e.Dynamic.Resource(namespaces).Get(e.Ctx, e.Namespace, metav1.GetOptions{})
			require.NoError(e, err)
			ns.SetFinalizers(nil)
			ns, err = e.Dynamic.Resource(namespaces).Update(e.Ctx, ns, metav1.UpdateOptions{})
			require.NoError(e, err)
			unstructured.RemoveNestedField(ns.Object, "spec", "finalizers")
			reply := e.do("PUT", "/api/v1/namespaces/"+e.Namespace+"/finalize", ns.Object)
			e.fact("code", true, reply.Code == 200 || reply.Code == 404)
			e.until("it is gone", func() bool {
				_, err := e.Dynamic.Resource(namespaces).Get(e.Ctx, e.Namespace, metav1.GetOptions{})
				return codeAndReason(err) == "404 NotFound"
			})
		}},
	}
}

// hold adds a finalizer to the case's namespace.
func (e *env) hold() {
	e.Helper()
	ns, err := e.Dynamic.Resource(namespaces).Get(e.Ctx, e.Namespace, metav1.GetOptions{})
	require.NoError(e, err)
	ns.SetFinalizers([]string{"example.org/hold"})
	_, err = e.Dynamic.Resource(namespaces).Update(e.Ctx, ns, metav1.UpdateOptions{})
	require.NoError(e, err)
}
