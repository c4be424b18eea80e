// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		method, path    string
		verb, name      string
		region, sub     string
		resource, space string
		streams         bool
	}{
		{method: http.MethodGet, path: "api/v1/pods", verb: "list", resource: "pods"},
		{method: http.MethodGet, path: "api/v1/namespaces/n/pods/a@eu.loodse", verb: "get", resource: "pods", space: "n", name: "a", region: "eu.loodse"},
		{method: http.MethodGet, path: "api/v1/namespaces/n", verb: "get", resource: "namespaces", name: "n"},
		{method: http.MethodPut, path: "apis/apps/v1/namespaces/n/deployments/a/scale", verb: "update", resource: "deployments", space: "n", name: "a", sub: "scale"},
		{method: http.MethodGet, path: "api/v1/namespaces/n/pods/a@eu.loodse/log", verb: "get", resource: "pods", space: "n", name: "a", region: "eu.loodse", sub: "log", streams: true},
		{method: http.MethodPost, path: "api/v1/namespaces/n/pods/a@eu.loodse/exec", verb: "create", resource: "pods", space: "n", name: "a", region: "eu.loodse", sub: "exec", streams: true},
	} {
		r := &http.Request{Method: c.method, URL: &url.URL{Path: "/regions/*/" + c.path}}
		got, err := targetOf(r, c.path)
		require.NoError(t, err, c.path)
		require.Equal(t, c.verb, got.Verb, c.path)
		require.Equal(t, c.resource, got.Resource, c.path)
		require.Equal(t, c.space, got.Namespace, c.path)
		require.Equal(t, c.name, got.plain, c.path)
		require.Equal(t, c.sub, got.Subresource, c.path)
		require.Equal(t, c.streams, got.streams(), c.path)
		if c.region == "" {
			require.Nil(t, got.region, c.path)
		} else {
			require.Equal(t, c.region, got.region.String(), c.path)
		}
	}
}

// Whatever the path is, its parts are single segments, and the path in one region stays below that region.
func FuzzTargets(f *testing.F) {
	for _, rest := range []string{
		"api/v1/namespaces/n/pods/a@eu.loodse/log", "apis/apps/v1/deployments", "api/v1/namespaces/../pods/a@eu.loodse/exec", "/api/v1/pods",
		"api/v1//pods", "api/v1/watch/pods", "apis/g/v1/proxy/x@eu.loodse", "api/v1/namespaces/n/pods/@/log", "version",
	} {
		f.Add(http.MethodGet, rest, "watch=1")
	}
	f.Fuzz(func(t *testing.T, method, rest, query string) {
		r := &http.Request{Method: method, URL: &url.URL{Path: "/regions/*/" + rest, RawQuery: query}}
		got, err := targetOf(r, rest)
		if err != nil || !got.IsResource {
			return
		}
		for _, part := range []string{got.Group, got.Version, got.Resource, got.Namespace, got.plain, got.Subresource} {
			require.NotContains(t, part, "/")
			require.NotContains(t, []string{".", ".."}, part)
		}
		if got.streams() && got.region != nil {
			to := to(r, *got.region, strings.Replace(rest, got.Name, got.plain, 1)).URL.Path
			require.True(t, strings.HasPrefix(to, "/regions/"+got.region.String()+"/"), to)
			require.NotContains(t, to, "@"+got.region.String())
		}
	})
}
