// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// page returns a page of 500 objects of 1.5 KB.
func page(b *testing.B) []byte {
	var items []any
	for i := range 500 {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": strings.Repeat("some value ", 30), "b": "line\nline\n", "c": "x"},
		}}
		o.SetName(fmt.Sprint("object-", i))
		o.SetNamespace("default")
		o.SetUID("0b0f9a5b-6bd8-4e2e-9c3c-3c4b5f7e1a2d")
		o.SetResourceVersion(fmt.Sprint(100000 + i))
		o.SetLabels(map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "web-1", "tier": "front"})
		fields := map[string]any{}
		for j := range 8 {
			fields[fmt.Sprint("f:field", j)] = map[string]any{".": map[string]any{}, "f:name": map[string]any{}, "f:value": map[string]any{}}
		}
		_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{
			"manager": "kubectl", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
		}}, "metadata", "managedFields")
		items = append(items, o.Object)
	}
	data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": map[string]any{"resourceVersion": "1"}, "items": items})
	require.NoError(b, err)
	return data
}

// BenchmarkList reads a page of 500 objects and copies them with edits. "ratio" is the time in which encoding/json only
// validates the page, divided by this time.
func BenchmarkList(b *testing.B) {
	answer := page(b)
	r := &Reader{Seed: 7, Annotation: note}
	var out []byte
	var spliced, valid time.Duration
	for b.Loop() {
		began := time.Now()
		l, err := r.List(answer)
		if err != nil {
			b.Fatal(err)
		}
		out = out[:0]
		for i := range l.Objects {
			out = r.Append(out, &l.Objects[i], edits)
		}
		spliced += time.Since(began)
		began = time.Now()
		if !json.Valid(answer) {
			b.Fatal("it is no JSON")
		}
		valid += time.Since(began)
	}
	b.ReportMetric(float64(spliced.Nanoseconds())/float64(b.N), "ns/op")
	b.ReportMetric(float64(valid)/float64(spliced), "ratio")
}
