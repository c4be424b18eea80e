// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// FuzzServeHTTP sends an arbitrary request twice. The server must respond both times, without a panic, with a status
// code of at least 200. FuzzServeHTTP skips watches and requests with a resourceVersion, because the server may let
// them wait.
func FuzzServeHTTP(f *testing.F) {
	widgets := "/apis/example.org/v1/namespaces/default/widgets"
	for _, seed := range []struct{ method, target, contentType, body string }{
		{"POST", widgets, "application/json", `{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":1}}`},
		{"POST", widgets, "application/json", `{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"a","finalizers":"x","labels":[]}}`},
		{"POST", widgets, "application/json", `{"metadata":7}`},
		{"POST", widgets, "application/json", `[]`},
		{"POST", widgets, "application/json", `null`},
		{"PUT", widgets + "/a", "application/json", `{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"a","resourceVersion":"x","managedFields":[{}]}}`},
		{"PATCH", widgets + "/a?fieldManager=m", "application/apply-patch+yaml", "apiVersion: example.org/v1\nkind: Widget\nspec: []"},
		{"PATCH", widgets + "/a", "application/merge-patch+json", `{"metadata":null,"spec":null}`},
		{"PATCH", widgets + "/a", "application/json-patch+json", `[{"op":"replace","path":"","value":{}},{"op":"add","path":"/a/-/b","value":1}]`},
		{"PATCH", "/api/v1/namespaces/default", "application/strategic-merge-patch+json", `{"spec":{"finalizers":{"$patch":"replace"}}}`},
		{"DELETE", widgets + "/a", "application/vnd.kubernetes.protobuf", "k8s\x00\x01\x02"},
		{"DELETE", widgets + "?labelSelector=%00", "application/json", `{"preconditions":{"uid":1}}`},
		{"GET", widgets + "?limit=1&continue=e30&watch=0", "", ""},
		{"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.b.c"},"spec":{"group":"b.c","names":{"plural":"a"},"versions":[{"name":"v1"}]}}`},
		{"POST", "/apis/apps/v1/namespaces/default/deployments", "application/json", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"template":{"spec":{"containers":[null]}}}}`},
		{"GET", "/openapi/v3/apis/example.org/v1", "", ""},
		{"GET", "//api//v1///", "", ""},
	} {
		f.Add(seed.method, seed.target, seed.contentType, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, method, target, contentType string, body []byte) {
		s := regiontest.NewServer(regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{widgetCRD()}})
		defer s.Close()
		for range 2 { // the second request meets the state after the first
			r, err := http.NewRequestWithContext(t.Context(), method, "http://memory.invalid", bytes.NewReader(body))
			if err != nil {
				t.Skip("not a request")
			}
			u, err := r.URL.Parse(target)
			if err != nil || u.Query().Get("watch") != "" || u.Query().Get("resourceVersion") != "" {
				t.Skip("not a request, or one that waits")
			}
			r.URL = u
			r.Header.Set("Content-Type", contentType)
			w := httptest.NewRecorder()
			w.Code = 0 // until the server answers
			s.ServeHTTP(w, r)
			require.GreaterOrEqual(t, w.Code, 200)
		}
	})
}
