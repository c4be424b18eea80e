// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/router/aggregate"
	"github.com/atoll-dev/atoll/router/proxy"
)

// get sends a GET as alice. The answer is not decompressed.
func (s *scene) get(t *testing.T, path string, header http.Header) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.URL+"/regions/*"+path, http.NoBody)
	require.NoError(t, err)
	req.Header = header.Clone()
	req.Header.Set("Authorization", "Bearer alice")
	if req.Header.Get("Accept-Encoding") == "" {
		req.Header.Set("Accept-Encoding", "identity")
	}
	resp, err := s.server.Client().Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return reply{resp.StatusCode, resp.Header, resp.ContentLength, resp.Body}
}

// reply is an answer. Its body is closed at the end of the test.
type reply struct {
	StatusCode    int
	Header        http.Header
	ContentLength int64
	Body          io.Reader
}

const kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"

func accept(types string) http.Header { return http.Header{"Accept": []string{types}} }

func TestTablesOfKubectl(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	s.put(t, "eu.loodse", "a")
	s.put(t, "us.loodse", "a")
	for path, rows := range map[string]int{"/api/v1/configmaps": 2, "/api/v1/configmaps?limit=1": 1, "/api/v1/namespaces/default/configmaps/a@us.loodse": 1} {
		table := metav1.Table{}
		resp := s.get(t, path, accept(kubectl))
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&table))
		require.Equal(t, "Table", table.Kind)
		require.Equal(t, "Region", table.ColumnDefinitions[1].Name, path)
		require.Len(t, table.Rows, rows, path)
		require.Contains(t, table.Rows[0].Cells[0], "a@", path)
		require.Equal(t, strings.Contains(path, "limit"), table.Continue != "", path)
	}
	resp := s.get(t, "/api/v1/configmaps?watch=true", accept(kubectl))
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	require.NoError(t, err)
	event := struct {
		Type   string
		Object metav1.Table
	}{}
	require.NoError(t, json.Unmarshal([]byte(line), &event))
	require.Equal(t, "ADDED Table", event.Type+" "+event.Object.Kind)
	require.Len(t, event.Object.Rows, 1)
}

// The metadata client of client-go lists, watches and gets the metadata of the objects of all regions.
func TestMetadataClient(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	s.put(t, "eu.loodse", "a")
	s.put(t, "us.loodse", "a")
	client, err := metadata.NewForConfig(&rest.Config{Host: s.server.URL + "/regions/*", BearerToken: "alice"})
	require.NoError(t, err)
	list, err := client.Resource(configMaps).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 2)
	require.Equal(t, "eu.loodse", list.Items[0].Annotations[aggregate.RegionAnnotation])
	one, err := client.Resource(configMaps).Namespace("default").Get(t.Context(), "a@us.loodse", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "a@us.loodse", one.Name)
	stream, err := client.Resource(configMaps).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	defer stream.Stop()
	s.put(t, "eu.loodse", "b")
	o, ok := (<-stream.ResultChan()).Object.(*metav1.PartialObjectMetadata)
	require.True(t, ok)
	require.Equal(t, "b@eu.loodse", o.Name)
}

func TestOtherFormsAreRefused(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	for types, code := range map[string]int{
		"":                                 http.StatusOK,
		"*/*":                              http.StatusOK,
		"text/plain;q=1, application/json": http.StatusOK,
		"application/vnd.kubernetes.protobuf,application/json":             http.StatusOK,
		"application/vnd.kubernetes.protobuf":                              http.StatusNotAcceptable,
		"application/json;as=Table;v=v1beta1;g=meta.k8s.io":                http.StatusNotAcceptable,
		"application/json;as=Table;v=v1;g=example.com":                     http.StatusNotAcceptable,
		"application/json;as=Something;v=v1;g=meta.k8s.io":                 http.StatusNotAcceptable,
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io": http.StatusOK,
	} {
		require.Equal(t, code, s.get(t, "/api/v1/configmaps", accept(types)).StatusCode, types)
		if code != http.StatusOK {
			require.Equal(t, code, s.get(t, "/api/v1/configmaps?watch=true", accept(types)).StatusCode, types)
		}
	}
}

// An answer is compressed if the client accepts that and the answer is long, as an API server does.
func TestLongAnswersAreCompressed(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	zipped := http.Header{"Accept-Encoding": []string{"deflate, gzip;q=0.5"}}
	length := func(resp reply, body io.Reader) int {
		t.Helper()
		require.Equal(t, http.StatusOK, resp.StatusCode)
		list := metav1.PartialObjectMetadataList{}
		require.NoError(t, json.NewDecoder(body).Decode(&list))
		return len(list.Items)
	}
	s.put(t, "eu.loodse", "a")
	resp := s.get(t, "/api/v1/configmaps", zipped)
	require.Empty(t, resp.Header.Get("Content-Encoding"))
	require.Positive(t, resp.ContentLength)
	require.Equal(t, 1, length(resp, resp.Body))
	for i := range 3 {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": strings.Repeat("x", 60<<10)}}}
		o.SetName(fmt.Sprint("o", i))
		_, err := s.client(t, "us.loodse").Resource(configMaps).Namespace("default").Create(t.Context(), o, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for range 2 { // the second one uses the compressor of the first one
		resp = s.get(t, "/api/v1/configmaps", zipped)
		require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
		body, err := gzip.NewReader(resp.Body)
		require.NoError(t, err)
		require.Equal(t, 4, length(resp, body))
	}
	resp = s.get(t, "/api/v1/configmaps", http.Header{"Accept-Encoding": []string{"gzip;q=0"}})
	require.Empty(t, resp.Header.Get("Content-Encoding"))
	require.Equal(t, 4, length(resp, resp.Body))
}
