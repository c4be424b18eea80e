// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wholetest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/maintest"
	"github.com/atoll-dev/atoll/internal/wholetest"
	"github.com/atoll-dev/atoll/region"
)

func TestMain(m *testing.M) { maintest.Main(m) }

// inAll creates a namespace in all servers.
func inAll(tb testing.TB, s wholetest.Servers, name string) string {
	tb.Helper()
	for _, api := range []region.API{s.Up, s.Clusters[0], s.Clusters[1]} {
		_, err := api.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(tb.Context(),
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}, metav1.CreateOptions{})
		require.NoError(tb, err)
	}
	return name
}

// list returns the desired replicas of the Deployments of a namespace, by name.
func list(t *testing.T, on region.API, namespace string) map[string]int64 {
	t.Helper()
	all, err := on.Dynamic().Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(namespace).
		List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	found := map[string]int64{}
	for _, obj := range all.Items {
		found[obj.GetName()], _, _ = unstructured.NestedInt64(obj.Object, "spec", "replicas")
	}
	return found
}
