// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func creation() []testCase {
	return []testCase{
		{"create-system-fields", "the server sets uid, resourceVersion, generation and creationTimestamp", func(e *env) {
			w := e.widgets()
			o := e.widget("a", map[string]any{"size": int64(1)})
			o.SetUID("mine")
			o.SetGeneration(7)
			o.SetCreationTimestamp(metav1.NewTime(time.Unix(1, 0)))
			deleted := metav1.NewTime(time.Unix(1, 0))
			o.SetDeletionTimestamp(&deleted)
			made, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("uid replaced", true, made.GetUID() != "mine" && len(made.GetUID()) == 36)
			e.fact("generation", int64(1), made.GetGeneration())
			e.fact("creationTimestamp is now", true, time.Since(made.GetCreationTimestamp().Time) < time.Hour)
			e.fact("deletionTimestamp dropped", true, made.GetDeletionTimestamp() == nil)
			e.fact("resourceVersion is a number", true, strings.Trim(made.GetResourceVersion(), "0123456789") == "" && made.GetResourceVersion() != "")
			read, err := w.Get(e.Ctx, "a", metav1.GetOptions{})
			require.NoError(e, err)
			e.fact("read is what create returned", made.Object, read.Object)
		}},
		{"create-with-resource-version", "a resourceVersion must not be set at a creation", func(e *env) {
			o := e.widget("a", nil)
			w := e.widgets()
			o.SetResourceVersion("1")
			_, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			e.fact("answer", "500 : resourceVersion should not be set on objects to be created", e.errorText(err))
		}},
		{"create-exists", "a name is unique; a terminating object keeps it", func(e *env) {
			w := e.widgets()
			o := e.widget("a", nil)
			o.SetFinalizers([]string{"example.org/hold"})
			_, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			_, err = w.Create(e.Ctx, o, metav1.CreateOptions{})
			e.fact("while it lives", `409 AlreadyExists: widgets.GROUP "a" already exists`, e.errorText(err))
			require.NoError(e, w.Delete(e.Ctx, "a", metav1.DeleteOptions{}))
			_, err = w.Create(e.Ctx, o, metav1.CreateOptions{})
			e.fact("while it is being deleted", `409 AlreadyExists: object is being deleted: widgets.GROUP "a" already exists`, e.errorText(err))
			e.release(w, "a")
			_, err = w.Create(e.Ctx, o, metav1.CreateOptions{})
			e.fact("after it is gone", "OK", e.errorText(err))
			e.fact("released", "OK", e.errorText(w.Delete(e.Ctx, "a", metav1.DeleteOptions{})))
			e.release(w, "a")
		}},
		{"create-generate-name", "generateName appends five random characters", func(e *env) {
			w := e.widgets()
			o := e.widget("", nil)
			o.SetGenerateName("made-")
			first, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			second, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("prefix", true, strings.HasPrefix(first.GetName(), "made-"))
			e.fact("length", len("made-")+5, len(first.GetName()))
			e.fact("different", true, first.GetName() != second.GetName())
		}},
		{"create-bad-names", "names are checked", func(e *env) {
			w := e.widgets()
			_, err := w.Create(e.Ctx, e.widget("Not_Valid", nil), metav1.CreateOptions{})
			e.fact("custom resource", `422 Invalid: Widget.GROUP "Not_Valid" is invalid: metadata.name: Invalid value: "Not_Valid": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, e.errorText(err))
			_, err = w.Create(e.Ctx, e.widget("", nil), metav1.CreateOptions{})
			e.fact("no name", `422 Invalid: Widget.GROUP "" is invalid: [metadata.name: Required value: name or generateName is required, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`, e.errorText(err))
			_, err = e.in(configmaps).Create(e.Ctx, configMap("A", nil), metav1.CreateOptions{})
			e.fact("ConfigMap", `422 Invalid: ConfigMap "A" is invalid: metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, e.errorText(err))
			_, err = e.Dynamic.Resource(namespaces).Create(e.Ctx, object("v1", "Namespace", "a.b"), metav1.CreateOptions{})
			e.fact("Namespace", `422 Invalid: Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots`, e.errorText(err))
		}},
		{"create-mismatches", "kind, version and namespace of the body must match the path", func(e *env) {
			w := e.widgets()
			o := e.widget("a", nil)
			o.SetNamespace("other")
			_, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			e.fact("namespace", "400 BadRequest: the namespace of the provided object does not match the namespace sent on the request", e.errorText(err))
			o = e.widget("a", nil)
			o.SetKind("Gadget")
			reply := e.do("POST", e.path(""), o.Object)
			e.fact("kind code", 422, reply.Code)
			e.fact("kind message", `Gadget.GROUP "a" is invalid: kind: Invalid value: "Gadget": must be Widget`, e.plain(text(reply.Body["message"])))
			o = e.widget("a", nil)
			o.SetAPIVersion(e.Group + "/v9")
			reply = e.do("POST", e.path(""), o.Object)
			e.fact("version code", 400, reply.Code)
			e.fact("version message", "the API version in the data (GROUP/v9) does not match the expected API version (GROUP/v1)", e.plain(text(reply.Body["message"])))
			reply = e.do("POST", e.path(""), "{not json")
			e.fact("malformed code", 400, reply.Code)
			e.fact("malformed reason", "BadRequest", reply.Body["reason"])
			_, err = e.Dynamic.Resource(e.gvr()).Namespace("does-not-exist-"+e.Namespace).Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			e.fact("missing namespace", `404 NotFound: namespaces "does-not-exist-NS" not found`, e.errorText(err))
		}},
		{"create-status-dropped", "a creation drops status if it is a subresource, and keeps it otherwise", func(e *env) {
			w := e.widgets()
			o := e.widget("a", nil)
			o.Object["status"] = map[string]any{"ready": true}
			made, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("status", nil, field(made, "status"))
		}},
		{"create-status-kept", "without the subresource, status is an ordinary field", func(e *env) {
			w := e.widgets(func(crd map[string]any) { delete(version(crd), "subresources") })
			o := e.widget("a", nil)
			o.Object["status"] = map[string]any{"ready": true}
			made, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("status", true, field(made, "status", "ready"))
			made.Object["status"] = map[string]any{"ready": false}
			changed, err := w.Update(e.Ctx, made, metav1.UpdateOptions{})
			require.NoError(e, err)
			e.fact("status after update", false, field(changed, "status", "ready"))
			e.fact("generation counts status", int64(2), changed.GetGeneration())
			_, err = w.UpdateStatus(e.Ctx, changed, metav1.UpdateOptions{})
			e.fact("no such subresource", `404 NotFound: widgets.GROUP "a" not found`, e.errorText(err))
		}},
	}
}
