// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"strings"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
)

func replace(text, old, with string) string { return strings.ReplaceAll(text, old, with) }

// some creates widgets with these names. Each has the label "name" with its name as the value.
func (e *env) some(w dynamic.ResourceInterface, list ...string) {
	e.Helper()
	for _, name := range list {
		o := e.widget(name, map[string]any{"color": "red"})
		o.SetLabels(map[string]string{"name": name})
		_, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
		require.NoError(e, err)
	}
}

func lists() []testCase {
	return []testCase{
		{"list-selectors", "lists are selected by labels and fields", func(e *env) {
			w := e.widgets()
			e.some(w, "c", "a", "b")
			o := e.widget("d", map[string]any{"color": "blue"})
			_, err := w.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			for _, q := range []struct {
				what, labels, fields string
				want                 []string
			}{
				{"all, by name", "", "", []string{"a", "b", "c", "d"}},
				{"label", "name=b", "", []string{"b"}},
				{"label set", "name in (a,b)", "", []string{"a", "b"}},
				{"label not", "name!=a", "", []string{"b", "c", "d"}},
				{"label exists", "name", "", []string{"a", "b", "c"}},
				{"label missing", "!name", "", []string{"d"}},
				{"name", "", "metadata.name=c", []string{"c"}},
				{"not name", "", "metadata.name!=c", []string{"a", "b", "d"}},
				{"namespace", "", "metadata.namespace=" + e.Namespace, []string{"a", "b", "c", "d"}},
				{"selectable field", "", "spec.color=blue", []string{"d"}},
			} {
				list, err := w.List(e.Ctx, metav1.ListOptions{LabelSelector: q.labels, FieldSelector: q.fields})
				require.NoError(e, err)
				e.fact(q.what, q.want, names(list))
			}
			_, err = w.List(e.Ctx, metav1.ListOptions{FieldSelector: "spec.size=1"})
			e.fact("unknown field", "400 BadRequest: field label not supported: spec.size", e.errorText(err))
			_, err = w.List(e.Ctx, metav1.ListOptions{LabelSelector: "a=="})
			e.fact("empty value", "OK", e.errorText(err))
			_, err = w.List(e.Ctx, metav1.ListOptions{LabelSelector: "a in"})
			e.fact("bad selector", "400 BadRequest", codeAndReason(err))
			list, err := e.Dynamic.Resource(e.gvr()).List(e.Ctx, metav1.ListOptions{})
			require.NoError(e, err)
			e.fact("over all namespaces", 4, len(list.Items))
			e.fact("kind", "WidgetList", list.GetKind())
			e.fact("item kind", "Widget", list.Items[0].GetKind())
			empty, err := e.Dynamic.Resource(e.gvr()).Namespace("nowhere").List(e.Ctx, metav1.ListOptions{})
			require.NoError(e, err)
			e.fact("a namespace that is not there", 0, len(empty.Items))
		}},
		{"list-versions", "a list has a resourceVersion, and respects a requested one", func(e *env) {
			w := e.widgets()
			e.some(w, "a")
			before, err := w.List(e.Ctx, metav1.ListOptions{})
			require.NoError(e, err)
			e.some(w, "b")
			exact, err := w.List(e.Ctx, metav1.ListOptions{ResourceVersion: before.GetResourceVersion(), ResourceVersionMatch: metav1.ResourceVersionMatchExact})
			require.NoError(e, err)
			e.fact("exact", []string{"a"}, names(exact))
			e.fact("exact version", before.GetResourceVersion(), exact.GetResourceVersion())
			newer, err := w.List(e.Ctx, metav1.ListOptions{ResourceVersion: before.GetResourceVersion(), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
			require.NoError(e, err)
			e.fact("not older has the first", true, len(newer.Items) >= 1)
			_, err = w.List(e.Ctx, metav1.ListOptions{ResourceVersion: "0"})
			e.fact("zero", "OK", e.errorText(err))
			_, err = w.List(e.Ctx, metav1.ListOptions{ResourceVersion: "abc"})
			e.fact("not a number", "400 BadRequest", codeAndReason(err))
			_, err = w.List(e.Ctx, metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact})
			e.fact("match without version", `422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided`, e.errorText(err))
			reply := e.do("GET", e.path("")+"?resourceVersion=1000000000000", nil) // a raw request, since clients retry
			e.fact("from the future", 504, reply.Code)
			e.fact("from the future, reason", "Timeout", reply.Body["reason"])
			e.fact("from the future, cause", "ResourceVersionTooLarge", reply.Body["details"].(map[string]any)["causes"].([]any)[0].(map[string]any)["reason"])
			_, err = w.Get(e.Ctx, "a", metav1.GetOptions{ResourceVersion: "0"})
			e.fact("get at zero", true, err == nil || codeAndReason(err) == "404 NotFound")
		}},
		{"list-builtin-fields", "some built-in types have more selectable fields", func(e *env) {
			for name, kind := range map[string]string{"a": "Opaque", "b": "example.org/kubeconfig"} {
				o := object("v1", "Secret", name)
				o.Object["type"] = kind
				_, err := e.in(secrets).Create(e.Ctx, o, metav1.CreateOptions{})
				require.NoError(e, err)
			}
			list, err := e.in(secrets).List(e.Ctx, metav1.ListOptions{FieldSelector: "type=example.org/kubeconfig"})
			require.NoError(e, err)
			e.fact("type of secrets", []string{"b"}, names(list))
			_, err = e.in(configmaps).List(e.Ctx, metav1.ListOptions{FieldSelector: "data.k=v"})
			e.fact("unknown", `400 BadRequest: "data.k" is not a known field selector: only "metadata.name", "metadata.namespace"`, e.errorText(err))
		}},
	}
}

func pages() []testCase {
	return []testCase{
		{"pages", "all pages of a list have one resourceVersion", func(e *env) {
			w := e.widgets()
			e.some(w, "a", "b", "c", "d", "e")
			first, err := w.List(e.Ctx, metav1.ListOptions{Limit: 2})
			require.NoError(e, err)
			e.fact("first", []string{"a", "b"}, names(first))
			e.fact("remaining", int64(3), *first.GetRemainingItemCount())
			require.NoError(e, w.Delete(e.Ctx, "d", metav1.DeleteOptions{}))
			e.some(w, "f")
			second, err := w.List(e.Ctx, metav1.ListOptions{Limit: 2, Continue: first.GetContinue()})
			require.NoError(e, err)
			e.fact("second, as it was", []string{"c", "d"}, names(second))
			e.fact("one version", first.GetResourceVersion(), second.GetResourceVersion())
			third, err := w.List(e.Ctx, metav1.ListOptions{Limit: 2, Continue: second.GetContinue()})
			require.NoError(e, err)
			e.fact("third", []string{"e"}, names(third))
			e.fact("end", "", third.GetContinue())
			selected, err := w.List(e.Ctx, metav1.ListOptions{Limit: 1, LabelSelector: "name in (a,e)"})
			require.NoError(e, err)
			e.fact("with a selector", []string{"a"}, names(selected))
			e.fact("no count with a selector", true, selected.GetRemainingItemCount() == nil)
			_, err = w.List(e.Ctx, metav1.ListOptions{Continue: "nonsense"})
			e.fact("bad token", "400 BadRequest", codeAndReason(err))
			_, err = w.List(e.Ctx, metav1.ListOptions{Limit: 2, Continue: first.GetContinue(), ResourceVersion: "1"})
			e.fact("token and version", "400 BadRequest: specifying resource version is not allowed when using continue", e.errorText(err))
		}},
	}
}

// compactions returns the cases in which the server forgets its history. They disturb other cases that run at the same
// time.
func compactions() []testCase {
	return []testCase{
		{"compaction-410", "a list or watch that continues from a compacted resourceVersion gets 410", func(e *env) {
			w := e.widgets()
			e.some(w, "a", "b", "c")
			first, err := w.List(e.Ctx, metav1.ListOptions{Limit: 1})
			require.NoError(e, err)
			_, err = w.Create(e.Ctx, e.widget("d", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			require.NoError(e, e.compact(e.Ctx))
			e.until("the page is gone, also from the server's cache", func() bool {
				_, err = w.List(e.Ctx, metav1.ListOptions{Limit: 1, Continue: first.GetContinue()})
				return err != nil
			})
			e.fact("page", "410 Expired", codeAndReason(err))
			next := continueOf(err)
			e.fact("a token to go on at any rate", true, next != "")
			second, err := w.List(e.Ctx, metav1.ListOptions{Limit: 1, Continue: next})
			require.NoError(e, err)
			e.fact("goes on at the present", []string{"b"}, names(second))
			_, err = w.List(e.Ctx, metav1.ListOptions{ResourceVersion: first.GetResourceVersion(), ResourceVersionMatch: metav1.ResourceVersionMatchExact})
			e.fact("exact list", "410 Expired", codeAndReason(err))
		}},
	}
}
