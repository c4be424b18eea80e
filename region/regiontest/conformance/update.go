// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const modified = "the object has been modified; please apply your changes to the latest version and try again"

func updates() []testCase {
	return []testCase{
		{"update-stale", "an update with a stale resourceVersion, or without one, is rejected", func(e *env) {
			w := e.widgets()
			first, err := w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(1)}), metav1.CreateOptions{})
			require.NoError(e, err)
			next := first.DeepCopy()
			require.NoError(e, unstructured.SetNestedField(next.Object, int64(2), "spec", "size"))
			second, err := w.Update(e.Ctx, next, metav1.UpdateOptions{})
			require.NoError(e, err)
			e.fact("resourceVersion changed", true, first.GetResourceVersion() != second.GetResourceVersion())
			_, err = w.Update(e.Ctx, next, metav1.UpdateOptions{})
			e.fact("stale", `409 Conflict: Operation cannot be fulfilled on widgets.GROUP "a": `+modified, e.errorText(err))
			next.SetResourceVersion("")
			_, err = w.Update(e.Ctx, next, metav1.UpdateOptions{})
			e.fact("without", `422 Invalid: widgets.GROUP "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`, e.errorText(err))
			next.SetResourceVersion("abc")
			_, err = w.Update(e.Ctx, next, metav1.UpdateOptions{})
			e.fact("not a number", `500 : strconv.ParseUint: parsing "abc": invalid syntax`, e.errorText(err))
		}},
		{"update-uid", "the uid in the body is a precondition", func(e *env) {
			w := e.widgets()
			made, err := w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			other := made.DeepCopy()
			other.SetUID("00000000-0000-0000-0000-000000000000")
			_, err = w.Update(e.Ctx, other, metav1.UpdateOptions{})
			said := strings.ReplaceAll(e.errorText(err), string(made.GetUID()), "UID")
			e.fact("another uid", `409 Conflict: Operation cannot be fulfilled on widgets.GROUP "a": StorageError: invalid object, Code: 4, Key: /registry/GROUP/widgets/NS/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: 00000000-0000-0000-0000-000000000000, UID in object meta: UID`, said)
			require.NoError(e, w.Delete(e.Ctx, "a", metav1.DeleteOptions{}))
			_, err = w.Update(e.Ctx, made, metav1.UpdateOptions{})
			e.fact("missing, with uid", `404 NotFound: widgets.GROUP "a" not found`, e.errorText(err))
			made.SetUID("")
			_, err = w.Update(e.Ctx, made, metav1.UpdateOptions{})
			e.fact("missing, without uid", `404 NotFound: widgets.GROUP "a" not found`, e.errorText(err))
			again, err := w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("a new uid for a new object", true, again.GetUID() != other.GetUID())
		}},
		{"update-noop", "a write without a change keeps the resourceVersion", func(e *env) {
			w := e.widgets()
			made, err := w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(1)}), metav1.CreateOptions{})
			require.NoError(e, err)
			same, err := w.Update(e.Ctx, made, metav1.UpdateOptions{})
			require.NoError(e, err)
			e.fact("update", made.GetResourceVersion(), same.GetResourceVersion())
			same, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"size":1}}`), metav1.PatchOptions{})
			require.NoError(e, err)
			e.fact("patch", made.GetResourceVersion(), same.GetResourceVersion())
			other, err := w.Update(e.Ctx, made, metav1.UpdateOptions{FieldManager: "somebody-else"})
			require.NoError(e, err)
			e.fact("update by another manager", made.GetResourceVersion(), other.GetResourceVersion())
		}},
		{"update-system-fields", "clients cannot change the server's fields", func(e *env) {
			w := e.widgets()
			made, err := w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			next := made.DeepCopy()
			next.SetGeneration(9)
			next.SetCreationTimestamp(metav1.Time{})
			next.SetLabels(map[string]string{"a": "b"})
			changed, err := w.Update(e.Ctx, next, metav1.UpdateOptions{})
			require.NoError(e, err)
			e.fact("generation", int64(1), changed.GetGeneration())
			e.fact("creationTimestamp", made.GetCreationTimestamp().Time, changed.GetCreationTimestamp().Time)
			stamp := metav1.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
			changed.SetDeletionTimestamp(&stamp)
			_, err = w.Update(e.Ctx, changed, metav1.UpdateOptions{})
			e.fact("deletionTimestamp", `422 Invalid: Widget.GROUP "a" is invalid: metadata.deletionTimestamp: Invalid value: "2030-01-01T00:00:00Z": field is immutable`, e.errorText(err))
		}},
		{"update-names", "the name in the body must match the path", func(e *env) {
			w := e.widgets()
			made, err := w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			made.SetName("b")
			reply := e.do("PUT", e.path("a"), made.Object)
			e.fact("code", 400, reply.Code)
			e.fact("message", "the name of the object (b) does not match the name on the URL (a)", text(reply.Body["message"]))
			reply = e.do("POST", e.path("x"), e.widget("y", nil).Object)
			e.fact("POST to another name", 201, reply.Code)
			reply = e.do("PUT", e.path(""), made.Object)
			e.fact("PUT to a collection", 400, reply.Code)
			e.fact("PUT to a collection, message", "name must be provided", text(reply.Body["message"]))
			made.SetName("")
			reply = e.do("PUT", e.path("a"), made.Object)
			e.fact("no name", 400, reply.Code)
			e.fact("no name, message", "the name of the object (a based on URL) was undeterminable: name must be provided", text(reply.Body["message"]))
		}},
		{"update-unconditional", "built-in types may be replaced without a resourceVersion", func(e *env) {
			c := e.in(configmaps)
			made, err := c.Create(e.Ctx, configMap("a", map[string]any{"k": "1"}), metav1.CreateOptions{})
			require.NoError(e, err)
			changed, err := c.Update(e.Ctx, configMap("a", map[string]any{"k": "2"}), metav1.UpdateOptions{})
			require.NoError(e, err)
			e.fact("uid", made.GetUID(), changed.GetUID())
			e.fact("data", "2", field(changed, "data", "k"))
			_, err = c.Update(e.Ctx, configMap("b", nil), metav1.UpdateOptions{})
			e.fact("missing", `404 NotFound: configmaps "b" not found`, e.errorText(err))
			e.fact("no generation", int64(0), changed.GetGeneration())
		}},
		{"update-lease-creates", "PUT of a missing Lease creates it, unless it has a uid", func(e *env) {
			c := e.in(leases)
			o := object("coordination.k8s.io/v1", "Lease", "a")
			o.Object["spec"] = map[string]any{"holderIdentity": "me"}
			made, err := c.Update(e.Ctx, o, metav1.UpdateOptions{})
			e.fact("created", "OK", e.errorText(err))
			require.NoError(e, c.Delete(e.Ctx, "a", metav1.DeleteOptions{}))
			made.SetResourceVersion("")
			_, err = c.Update(e.Ctx, made, metav1.UpdateOptions{})
			said := strings.ReplaceAll(e.errorText(err), string(made.GetUID()), "UID")
			e.fact("with uid", `409 Conflict: Operation cannot be fulfilled on leases.coordination.k8s.io "a": StorageError: invalid object, Code: 4, Key: /registry/leases/NS/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: UID, UID in object meta: `, said)
			again, err := c.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			again.SetResourceVersion("")
			_, err = c.Update(e.Ctx, again, metav1.UpdateOptions{})
			e.fact("unconditional", `422 Invalid: leases.coordination.k8s.io "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`, e.errorText(err))
		}},
	}
}
