// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	asTable       = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	asPartial     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asPartialList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

func forms() []testCase {
	return []testCase{
		{"table", "a type prints the columns of its CRD", func(e *env) {
			w := e.widgets()
			_, err := w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(3)}), metav1.CreateOptions{})
			require.NoError(e, err)
			reply := e.do("GET", e.path(""), nil, "Accept", asTable)
			e.fact("kind", "meta.k8s.io/v1 Table", text(reply.Body["apiVersion"])+" "+text(reply.Body["kind"]))
			e.fact("columns", []string{"Name string name 0", "Size integer  0", "Color string  1", "Age date  0"}, columns(reply.Body))
			row := reply.Body["rows"].([]any)[0].(map[string]any)
			cells := row["cells"].([]any)
			e.fact("cells", []any{"a", float64(3), nil}, cells[:3])
			e.fact("row object", "PartialObjectMetadata", row["object"].(map[string]any)["kind"])
			reply = e.do("GET", e.path("a"), nil, "Accept", asTable)
			e.fact("one object", 1, len(reply.Body["rows"].([]any)))
			reply = e.do("GET", e.path("")+"?includeObject=None", nil, "Accept", asTable)
			_, there := reply.Body["rows"].([]any)[0].(map[string]any)["object"]
			e.fact("without objects", true, !there || reply.Body["rows"].([]any)[0].(map[string]any)["object"] == nil)
			reply = e.do("GET", e.path("")+"?includeObject=Object", nil, "Accept", asTable)
			e.fact("with objects", "Widget", reply.Body["rows"].([]any)[0].(map[string]any)["object"].(map[string]any)["kind"])
			reply = e.do("GET", e.path("")+"?watch=true&timeoutSeconds=1", nil, "Accept", asTable)
			e.fact("watch", true, strings.HasPrefix(reply.Text, `{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{`))
		}},
		{"table-defaults", "without columns, a type prints name and age", func(e *env) {
			w := e.widgets(func(crd map[string]any) { delete(version(crd), "additionalPrinterColumns") })
			_, err := w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			reply := e.do("GET", e.path(""), nil, "Accept", asTable)
			e.fact("columns", []string{"Name string name 0", "Age date  0"}, columns(reply.Body))
			reply = e.do("GET", "/api/v1/namespaces/"+e.Namespace, nil, "Accept", asTable)
			e.fact("namespaces", []string{"Name string name 0", "Status string  0", "Age string  0"}, columns(reply.Body))
		}},
		{"types-in-lists", "objects in lists of custom types have their type, those in lists of built-in types have none", func(e *env) {
			e.some(e.widgets(), "a")
			for what, path := range map[string]string{"custom": e.path(""), "built-in": "/api/v1/namespaces"} {
				items, _ := e.do("GET", path, nil).Body["items"].([]any)
				require.NotEmpty(e, items)
				item, _ := items[0].(map[string]any)
				_, kind := item["kind"]
				_, version := item["apiVersion"]
				e.fact(what, map[string]bool{"custom": true, "built-in": false}[what], kind || version)
			}
			list, err := e.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(e.Ctx, metav1.ListOptions{})
			require.NoError(e, err)
			e.fact("a dynamic client adds it", "Namespace", list.Items[0].GetKind())
		}},
		{"partial", "clients can request metadata only", func(e *env) {
			w := e.widgets()
			e.some(w, "a", "b")
			m := e.Metadata.Resource(e.gvr()).Namespace(e.Namespace)
			one, err := m.Get(e.Ctx, "a", metav1.GetOptions{})
			require.NoError(e, err)
			e.fact("labels", map[string]string{"name": "a"}, one.Labels)
			list, err := m.List(e.Ctx, metav1.ListOptions{LabelSelector: "name=b"})
			require.NoError(e, err)
			e.fact("list", 1, len(list.Items))
			patched, err := m.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{})
			require.NoError(e, err)
			e.fact("patch", "y", patched.Labels["x"])
			reply := e.do("GET", e.path("a"), nil, "Accept", asPartial)
			_, spec := reply.Body["spec"]
			e.fact("kind", "meta.k8s.io/v1 PartialObjectMetadata", text(reply.Body["apiVersion"])+" "+text(reply.Body["kind"]))
			e.fact("no spec", false, spec)
			reply = e.do("GET", e.path(""), nil, "Accept", asPartialList)
			e.fact("list kind", "PartialObjectMetadataList", text(reply.Body["kind"]))
			events, err := m.Watch(e.Ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
			require.NoError(e, err)
			defer events.Stop()
			event := <-events.ResultChan()
			o, ok := event.Object.(*metav1.PartialObjectMetadata)
			e.fact("watch", true, ok && o.Name == "a")
		}},
		{"partial-writes", "a write that requests metadata only returns metadata only", func(e *env) {
			e.widgets()
			write := func(what, method, path, body, media string) {
				reply := e.do(method, path, body, "Accept", asPartial, "Content-Type", media)
				meta, _ := reply.Body["metadata"].(map[string]any)
				e.fact(what, "meta.k8s.io/v1 PartialObjectMetadata a", text(reply.Body["apiVersion"])+" "+text(reply.Body["kind"])+" "+text(meta["name"]))
				e.fact(what+", resourceVersion", true, text(meta["resourceVersion"]) != "")
				e.fact(what+", fields", 3, len(reply.Body))
			}
			widget := func(more map[string]any) string {
				body := e.widget("a", map[string]any{"size": int64(1)})
				for field, value := range more {
					body.Object[field] = value
				}
				data, err := json.Marshal(body.Object)
				require.NoError(e, err)
				return string(data)
			}
			const apply, merge = "application/apply-patch+yaml", "application/merge-patch+json"
			write("create", "POST", e.path(""), widget(nil), "application/json")
			write("apply", "PATCH", e.path("a")+"?fieldManager=m", widget(nil), apply)
			write("apply of a status", "PATCH", e.path("a")+"/status?fieldManager=m", widget(map[string]any{"status": map[string]any{"ready": true}}), apply)
			write("patch", "PATCH", e.path("a"), `{"metadata":{"labels":{"x":"y"}}}`, merge)
			refused := e.do("PATCH", e.path("a"), `{"metadata":{"resourceVersion":"1"}}`, "Accept", asPartial, "Content-Type", merge)
			e.fact("refusal", "Status 409", text(refused.Body["kind"])+" "+strconv.Itoa(refused.Code))
		}},
	}
}

// columns returns name, type, format and priority of each column.
func columns(table map[string]any) []string {
	var found []string
	definitions, _ := table["columnDefinitions"].([]any)
	for _, d := range definitions {
		c := d.(map[string]any)
		priority := "0"
		if c["priority"] != float64(0) {
			priority = "1"
		}
		found = append(found, text(c["name"])+" "+text(c["type"])+" "+text(c["format"])+" "+priority)
	}
	return found
}
