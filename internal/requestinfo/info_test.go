// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package requestinfo

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// kubernetes is the configuration of kube-apiserver.
var kubernetes = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// kubernetesLongRunning is BasicLongRunningRequestCheck of k8s.io/apiserver/pkg/server/filters, as
// kube-apiserver configures it.
func kubernetesLongRunning(i *request.RequestInfo) bool {
	return sets.NewString("watch", "proxy").Has(i.Verb) ||
		i.IsResourceRequest && sets.NewString("attach", "exec", "proxy", "log", "portforward").Has(i.Subresource)
}

// differs returns an error if Of and RequestInfoFactory give r another meaning.
func differs(r *http.Request) error {
	want, wantErr := kubernetes.NewRequestInfo(r)
	got, err := Of(r)
	if (err == nil) != (wantErr == nil) {
		return fmt.Errorf("the error is %w, want %w", err, wantErr)
	}
	expected := Info{
		IsResource: want.IsResourceRequest, Verb: want.Verb, Group: want.APIGroup, Version: want.APIVersion, Namespace: want.Namespace,
		Resource: want.Resource, Subresource: want.Subresource, Name: want.Name,
	}
	if got != expected {
		return fmt.Errorf("%+v, want %+v", got, expected)
	}
	if long := kubernetesLongRunning(want); got.IsLongRunning() != long {
		return fmt.Errorf("%+v is long-running: %t, want %t", got, got.IsLongRunning(), long)
	}
	return nil
}

var (
	paths = []string{
		"/", "/api", "/api/v1", "/api/v1/", "/apis", "/apis/apps", "/apis/apps/v1", "/apis/apps/v1/deployments", "/version", "/healthz/log", "/livez",
		"/api/v1/pods", "/api/v1/pods/", "/api/v1/pods/p", "/api/v1/namespaces", "/api/v1/namespaces/n", "/api/v1/namespaces/n/status",
		"/api/v1/namespaces/n/finalize", "/api/v1/namespaces/n/finalize/x", "/api/v1/namespaces/n/pods", "/api/v1/namespaces/n/pods/p",
		"/api/v1/namespaces/n/pods/p/log", "/api/v1/namespaces/n/pods/p/exec", "/api/v1/namespaces/n/pods/p/attach", "/api/v1/namespaces/n/pods/p/portforward",
		"/api/v1/namespaces/n/services/s/proxy/a/b", "/api/v1/nodes/n/proxy/logs/", "/api/v1/pods/p/status", "/api/v1/pods/log",
		"/api/v1/watch", "/api/v1/watch/", "/api/v1/watch/pods", "/api/v1/watch/pods/p", "/api/v1/watch/namespaces/n/pods", "/api/v1/watch/namespaces/n/pods/p",
		"/apis/apps/v1/watch/deployments", "/api/v1/proxy", "/api/v1/proxy/nodes/n", "/api/v1/proxy/namespaces/n/services/s/x/y", "/api/v1/namespaces/watch/pods",
		"/apis/apps/v1/proxy/namespaces/n/x", "/api//pods", "/api/v1//pods", "/api/v1/namespaces//pods", "//api/v1/pods", "/apis/loodse/v1/watch/watch",
	}
	queries = []string{
		"", "watch", "watch=", "watch=true", "watch=yes", "watch=1", "watch=0", "watch=00", "watch=false", "watch=FALSE", "watch=False", "watch=no", "watch=%74rue",
		"w%61tch=true", "Watch=true", "watch=false&watch=true", "watch=true&watch=false", "watch=true;x=1", "x=1&watch=2", "watch=+", "follow=true",
		"watch=yes&limit=x", "watch=0&timeoutSeconds=x", "watch=yes&labelSelector=%3D%3D",
		"fieldSelector=metadata.name%3Dp", "fieldSelector=metadata.name%3D%3Dp", "fieldSelector=metadata.name!%3Dp", "fieldSelector=metadata.name=p&watch=on",
		"fieldSelector=metadata.name%3D..", "fieldSelector=metadata.name%3Da/b", "fieldSelector=metadata.name%3D", "fieldSelector=a%3Db,metadata.name%3Dp",
		"fieldSelector=x", "fieldSelector=metadata.name%3Dp&limit=many", "fieldSelector=metadata.name%3Dp&labelSelector=a+in+b", "fieldSelector=&fieldSelector=metadata.name%3Dp",
		"fieldSelector=metadata.name%3Da%5C%2Cb", "fieldSelector=metadata.namespace%3Dn", "fieldSelector=metadata.name%3Dp&sendInitialEvents=x", "fieldSelector=metadata.name%3Dp&timeoutSeconds=1",
	}
	methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get", "Watch", "LIST"}
)

// Of returns the same Info as kube-apiserver for each of these methods on each of these paths with
// each of these queries.
func TestReadsAsKubernetesDoes(t *testing.T) {
	for _, method := range methods {
		for _, path := range paths {
			for _, query := range queries {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
				r.Method, r.URL.Path, r.URL.RawQuery = method, path, query
				require.NoError(t, differs(r), "%s %s?%s", method, path, query)
			}
		}
	}
}

// FuzzReadsAsKubernetesDoes searches for a request with another meaning here than in
// kube-apiserver.
func FuzzReadsAsKubernetesDoes(f *testing.F) {
	for i, path := range paths {
		f.Add(methods[i%len(methods)], path+"?"+queries[i%len(queries)])
	}
	for i, query := range queries {
		f.Add(methods[i%2], "/apis/apps/v1/namespaces/n/deployments?"+query)
	}
	f.Fuzz(func(t *testing.T, method, uri string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + uri + " HTTP/1.1\r\nHost: x\r\n\r\n")))
		if err != nil {
			return
		}
		if err := differs(r); err != nil {
			t.Fatalf("%s %s: %v", method, uri, err)
		}
	})
}
