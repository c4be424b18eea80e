// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// listJSON lists with ListJSON in pages, and returns all objects and the last head.
func listJSON(t *testing.T, r *aggregate.Reader, form aggregate.Form, limit int64) (objects []string, head *unstructured.UnstructuredList) {
	t.Helper()
	opts := metav1.ListOptions{Limit: limit}
	for {
		var err error
		head, err = r.ListJSON(t.Context(), aggregate.Encoding{Form: form, Compressed: limit == 3}, opts, func(object []byte) error {
			objects = append(objects, string(object))
			return nil
		})
		require.NoError(t, err)
		require.Empty(t, head.Items)
		if opts.Continue = head.GetContinue(); opts.Continue == "" {
			return objects, head
		}
	}
}

// A list as JSON is the decoded list: in all page sizes, with and without REST, with other groups in the regions. A
// watch goes on from it.
func TestJSONListsEqualDecodedLists(t *testing.T) {
	for _, raw := range []bool{true, false} {
		for _, limit := range []int64{0, 1, 3} {
			t.Run(fmt.Sprintf("raw=%v/limit=%d", raw, limit), func(t *testing.T) {
				w := newWorld(t, 3)
				defer w.close()
				if !raw {
					members := w.members(w.keys...)
					for i := range members {
						members[i].REST = nil
					}
					require.NoError(t, w.set.Put(members...))
				}
				for i, k := range w.keys {
					w.put(k, []string{"same", "b", "c", "d"}[:i+1]...)
				}
				api := w.api(aggregate.Options{Qualify: true})
				reader := api.Reader("", configMaps)
				want, err := reader.ListAll(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				objects, head := listJSON(t, reader, aggregate.Objects, limit)
				require.Len(t, objects, len(want.Items))
				for i := range objects {
					got := map[string]any{}
					require.NoError(t, json.Unmarshal([]byte(objects[i]), &got))
					if _, typed := got["kind"]; !typed { // a region does not type the objects of a list
						got["apiVersion"], got["kind"] = "v1", "ConfigMap"
					}
					require.Equal(t, want.Items[i].Object, got)
				}
				require.Equal(t, want.GetKind(), head.GetKind())
				require.Equal(t, want.GetAPIVersion(), head.GetAPIVersion())
				if limit == 0 {
					require.Equal(t, want.GetResourceVersion(), head.GetResourceVersion(), "with the fingerprints of decoded objects")
				}

				partials, head := listJSON(t, reader, aggregate.Metadata, limit)
				require.Equal(t, "meta.k8s.io/v1 PartialObjectMetadataList", head.GetAPIVersion()+" "+head.GetKind())
				for i := range partials {
					got := map[string]any{}
					require.NoError(t, json.Unmarshal([]byte(partials[i]), &got))
					require.Equal(t, aggregate.MetadataOf(&want.Items[i]).Object["metadata"], got["metadata"])
					require.NotContains(t, got, "data")
				}
			})
		}
	}
}

// A table has the columns of all regions, in each page, and a column Region; the first cell is the object's full name.
func TestTables(t *testing.T) {
	for _, limit := range []int64{0, 1, 3} {
		w := newWorld(t, 3)
		for i, k := range w.keys {
			w.put(k, []string{"same", "b", "c"}[:i+1]...)
		}
		reader := w.api(aggregate.Options{Qualify: true}).Reader("", configMaps)
		rows, head := listJSON(t, reader, aggregate.Table, limit)
		require.Len(t, rows, 6)
		table := metav1.Table{}
		data, err := json.Marshal(head.Object)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &table))
		require.Equal(t, "meta.k8s.io/v1 Table", table.APIVersion+" "+table.Kind)
		var names []string
		for _, c := range table.ColumnDefinitions {
			names = append(names, c.Name)
		}
		require.Equal(t, []string{"Name", "Region", "Age"}, names)
		row := metav1.TableRow{}
		require.NoError(t, json.Unmarshal([]byte(rows[5]), &row))
		require.Equal(t, []any{"same@r2.loodse", "r2.loodse"}, row.Cells[:2])
		require.Len(t, row.Cells, len(names))
		o := metav1.PartialObjectMetadata{}
		require.NoError(t, json.Unmarshal(row.Object.Raw, &o))
		require.Equal(t, "same@r2.loodse r2.loodse", o.Name+" "+o.Annotations[aggregate.RegionAnnotation])

		one, err := w.api(aggregate.Options{Qualify: true}).Dynamic().Resource(configMaps).Namespace("default").Get(t.Context(), "same@r1.loodse", metav1.GetOptions{})
		require.NoError(t, err)
		data, err = w.api(aggregate.Options{Qualify: true}).Reader("default", configMaps).Row(t.Context(), aggregate.Encoding{Form: aggregate.TableWithObjects}, one)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &table))
		require.Len(t, table.Rows, 1)
		require.Equal(t, "same@r1.loodse", table.Rows[0].Cells[0])
		require.Contains(t, string(table.Rows[0].Object.Raw), `"data"`)
		w.close()
	}
}

func TestTablesNeedREST(t *testing.T) {
	w := newWorld(t, 1)
	defer w.close()
	members := w.members(w.keys...)
	members[0].REST = nil
	require.NoError(t, w.set.Put(members...))
	reader := w.api(aggregate.Options{}).Reader("default", configMaps)
	_, err := reader.ListJSON(t.Context(), aggregate.Encoding{Form: aggregate.Table}, metav1.ListOptions{}, func([]byte) error { return nil })
	require.ErrorContains(t, err, "cannot be listed in this form")
	w.put(w.keys[0], "a")
	o, err := w.api(aggregate.Options{}).Dynamic().Resource(configMaps).Namespace("default").Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = reader.Row(t.Context(), aggregate.Encoding{Form: aggregate.Table}, o)
	require.Equal(t, http.StatusNotAcceptable, int(statusOf(err).Code))
}

func statusOf(err error) metav1.Status {
	if status, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // it is not wrapped
		return status.Status()
	}
	return metav1.Status{}
}

// canned returns a region that answers each list with a table of one row.
func canned(t *testing.T, i int, column, cell string) aggregate.Member {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},
			"columnDefinitions":[{"name":"Name","type":"string","format":"name"},{"name":%q,"type":"string"},{"name":"Age","type":"string"}],
			"rows":[{"cells":["a",%q,"5m"],"object":{"metadata":{"name":"a","resourceVersion":"6"}}}]}`, column, cell)
	}))
	t.Cleanup(server.Close)
	raw, err := region.RESTFor(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	return aggregate.Member{Region: key(i), Client: client, REST: raw}
}

// Regions with different columns have all of them, without a value where a region lacks the column, also on later
// pages.
func TestTablesOfDifferentColumnsAreUnited(t *testing.T) {
	for _, limit := range []int64{0, 1} {
		set, err := aggregate.Fixed(canned(t, 0, "Ready", "1/1"), canned(t, 1, "Phase", "Up"))
		require.NoError(t, err)
		api, err := aggregate.New(set, aggregate.Options{})
		require.NoError(t, err)
		rows, head := listJSON(t, api.Reader("", configMaps), aggregate.Table, limit)
		var names []any
		columns, ok := head.Object["columnDefinitions"].([]any)
		require.True(t, ok)
		for _, c := range columns {
			names = append(names, c.(map[string]any)["name"]) //nolint:forcetypeassert // the test fails then
		}
		require.Equal(t, []any{"Name", "Region", "Ready", "Age", "Phase"}, names, "limit %d", limit)
		require.Len(t, rows, 2)
		require.Contains(t, rows[0], `["a","r0.loodse","1/1","5m",null]`)
		require.Contains(t, rows[1], `["a","r1.loodse",null,"5m","Up"]`)
	}
}

// A watch has the objects in the form that it asks for: events, the bookmark after the initial ones, and the deletions
// of a region that leaves.
func TestWatchesHaveForms(t *testing.T) {
	for _, form := range []aggregate.Form{aggregate.Objects, aggregate.Metadata, aggregate.Table, aggregate.TableWithObjects} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2)
			defer w.close()
			w.put(w.keys[0], "a")
			w.put(w.keys[1], "a")
			ctx, cancel := context.WithCancel(t.Context())
			stream, err := w.api(aggregate.Options{Qualify: true}).Reader("", configMaps).WatchJSON(ctx, aggregate.Encoding{Form: form}, initial())
			require.NoError(t, err)
			names := []string{}
			next := func(kind watch.EventType) (object map[string]any, cells []any) {
				e := <-stream.ResultChan()
				require.Equal(t, kind, e.Type)
				raw, ok := e.Object.(*runtime.Unknown)
				require.True(t, ok)
				require.NoError(t, json.Unmarshal(raw.Raw, &object))
				if rows, ok := object["rows"].([]any); ok {
					require.Equal(t, "Table", object["kind"])
					require.Len(t, object["columnDefinitions"], map[bool]int{true: 0, false: 3}[kind == watch.Bookmark])
					row, ok := rows[0].(map[string]any)
					require.True(t, ok)
					object, _ = row["object"].(map[string]any)
					cells, _ = row["cells"].([]any)
				}
				o := &unstructured.Unstructured{Object: object}
				names = append(names, o.GetName())
				require.NotEmpty(t, o.GetResourceVersion())
				return object, cells
			}
			want := map[aggregate.Form]string{aggregate.Objects: "ConfigMap", aggregate.Metadata: "PartialObjectMetadata", aggregate.Table: "PartialObjectMetadata", aggregate.TableWithObjects: "ConfigMap"}[form]
			for range 2 {
				o, cells := next(watch.Added)
				require.Equal(t, want, o["kind"])
				require.Equal(t, form == aggregate.Objects || form == aggregate.TableWithObjects, o["data"] != nil)
				if form == aggregate.Table {
					require.Equal(t, names[len(names)-1], cells[0])
				}
			}
			require.ElementsMatch(t, []string{"a@r0.loodse", "a@r1.loodse"}, names)
			o, _ := next(watch.Bookmark)
			require.Equal(t, "true", (&unstructured.Unstructured{Object: o}).GetAnnotations()[metav1.InitialEventsAnnotationKey])

			require.NoError(t, w.set.Put(w.members(w.keys[0])...))
			o, cells := next(watch.Deleted)
			require.Equal(t, "a@r1.loodse", (&unstructured.Unstructured{Object: o}).GetName())
			if form == aggregate.Table {
				require.Equal(t, []any{"a@r1.loodse", "r1.loodse", nil}, cells)
			}
			cancel()
			for range stream.ResultChan() {
			}
		})
	}
}

// A watch goes on from a list in the same form, and not from one in another form, whose fingerprints differ.
func TestAFormGoesOnFromItsOwnList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		defer w.close()
		w.put(w.keys[0], "a")
		reader := w.api(aggregate.Options{}).Reader("", configMaps)
		for _, listed := range []aggregate.Form{aggregate.Objects, aggregate.Metadata} {
			_, head := listJSON(t, reader, listed, 0)
			for _, watched := range []aggregate.Form{aggregate.Objects, aggregate.Metadata} {
				ctx, cancel := context.WithCancel(t.Context())
				stream, err := reader.WatchJSON(ctx, aggregate.Encoding{Form: watched}, metav1.ListOptions{ResourceVersion: head.GetResourceVersion()})
				require.NoError(t, err)
				synctest.Wait()
				var got watch.EventType
				select {
				case e := <-stream.ResultChan():
					got = e.Type
				default:
				}
				require.Equal(t, listed != watched, got == watch.Error, "%v and %v: %v", listed, watched, got)
				cancel()
				for range stream.ResultChan() {
				}
			}
		}
	})
}

// untabled returns a region whose API server makes no tables: it has one object, in lists and in watches.
func untabled(t *testing.T, i int) aggregate.Member {
	t.Helper()
	const object = `"metadata":{"name":"b","uid":"u","resourceVersion":"6","creationTimestamp":"2026-01-02T03:04:05Z"},"data":{"k":"v"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if accept := r.Header.Get("Accept"); strings.Contains(accept, "Table") && !strings.HasSuffix(accept, ",application/json") {
			http.Error(w, "no tables", http.StatusNotAcceptable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("watch") != "":
			_, _ = fmt.Fprintf(w, `{"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1",%s}}`+"\n", strings.Replace(object, `"6"`, `"8"`, 1))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case strings.HasSuffix(r.URL.Path, "/b"):
			_, _ = fmt.Fprintf(w, `{"kind":"ConfigMap","apiVersion":"v1",%s}`, object)
		default:
			_, _ = fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{%s}]}`, object)
		}
	}))
	t.Cleanup(server.Close)
	raw, err := region.RESTFor(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	return aggregate.Member{Region: key(i), Client: client, REST: raw}
}

// An API server leaves the type out of the objects of a list. The events that a watch makes of such a list have the type:
// clients cannot decode them otherwise.
func TestEventsOfAListHaveTheType(t *testing.T) {
	set, err := aggregate.Fixed(untabled(t, 1))
	require.NoError(t, err)
	sharing, err := aggregate.NewSharing(aggregate.SharingOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- sharing.Start(ctx) }()
	for name, opts := range map[string]aggregate.Options{"own": {}, "shared": {Sharing: sharing, Identity: "alice"}} {
		t.Run(name, func(t *testing.T) {
			api, err := aggregate.New(set, opts)
			require.NoError(t, err)
			watching, stop := context.WithCancel(t.Context())
			stream, err := api.Reader("", configMaps).WatchJSON(watching, aggregate.Encoding{}, metav1.ListOptions{})
			require.NoError(t, err)
			e := <-stream.ResultChan()
			require.Equal(t, watch.Added, e.Type)
			raw, ok := e.Object.(*runtime.Unknown)
			require.True(t, ok, "%v", e)
			o := &unstructured.Unstructured{}
			require.NoError(t, o.UnmarshalJSON(raw.Raw), "%s", raw.Raw)
			require.Equal(t, "ConfigMap", o.GetKind())
			require.Equal(t, "v1", o.GetAPIVersion())
			stop()
			for range stream.ResultChan() {
			}
		})
	}
	cancel()
	require.NoError(t, <-ended)
}

// A region that makes no tables has rows with its objects' names and ages, in lists, for one object, and in watches.
func TestTablesOfARegionWithoutTables(t *testing.T) {
	for form, kind := range map[aggregate.Form]string{aggregate.Table: "PartialObjectMetadata", aggregate.TableWithObjects: "ConfigMap"} {
		set, err := aggregate.Fixed(canned(t, 0, "Ready", "1/1"), untabled(t, 1))
		require.NoError(t, err)
		api, err := aggregate.New(set, aggregate.Options{Qualify: true})
		require.NoError(t, err)
		rows, _ := listJSON(t, api.Reader("", configMaps), form, 0)
		require.Len(t, rows, 2)
		require.Contains(t, rows[0], `["a@r0.loodse","r0.loodse","1/1","5m",null]`)
		require.Contains(t, rows[1], `["b@r1.loodse","r1.loodse",null,null,"2026-01-02T03:04:05Z"]`)
		require.Contains(t, rows[1], `"kind":"`+kind+`"`)

		set, err = aggregate.Fixed(untabled(t, 1))
		require.NoError(t, err)
		api, err = aggregate.New(set, aggregate.Options{Qualify: true})
		require.NoError(t, err)
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": "b@r1.loodse", "annotations": map[string]any{aggregate.RegionAnnotation: "r1.loodse"},
		}}}
		row, err := api.Reader("default", configMaps).Row(t.Context(), aggregate.Encoding{Form: form}, o)
		require.NoError(t, err)
		require.Contains(t, string(row), `"cells":["b@r1.loodse","r1.loodse","2026-01-02T03:04:05Z"]`)

		rows, head := listJSON(t, api.Reader("", configMaps), form, 0)
		require.Len(t, rows, 1)
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := api.Reader("", configMaps).WatchJSON(ctx, aggregate.Encoding{Form: form}, metav1.ListOptions{ResourceVersion: head.GetResourceVersion()})
		require.NoError(t, err)
		e := <-stream.ResultChan()
		raw, ok := e.Object.(*runtime.Unknown)
		require.True(t, ok, "%v", e)
		require.Equal(t, watch.Modified, e.Type)
		require.Contains(t, string(raw.Raw), `"cells":["b@r1.loodse","r1.loodse","2026-01-02T03:04:05Z"]`)
		require.Contains(t, string(raw.Raw), `"kind":"`+kind+`"`)
		cancel()
		for range stream.ResultChan() {
		}
	}
}
