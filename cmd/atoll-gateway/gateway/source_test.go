// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	crds "github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// newPlane starts a central plane whose Peers are the servers of s, accepted and with their regions.
func newPlane(t *testing.T, s *site) *regiontest.Server {
	t.Helper()
	types, err := crds.TypedCRDs()
	require.NoError(t, err)
	plane := regiontest.NewServer(regiontest.Options{Name: "plane", CRDs: types})
	t.Cleanup(plane.Close)
	kubeconfig, err := plane.Listen(t.Context())
	require.NoError(t, err)
	s.write("plane.kubeconfig", kubeconfig)
	apply(t, plane, `{apiVersion: v1, kind: Namespace, metadata: {name: kubecarrier-system}}`)
	for name, server := range s.servers {
		kubeconfig, err := os.ReadFile(s.path(name + ".kubeconfig"))
		require.NoError(t, err)
		peers, err := dynamic.NewForConfig(server.Config())
		require.NoError(t, err)
		system, err := peers.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(t.Context(), "kube-system", metav1.GetOptions{})
		require.NoError(t, err)
		apply(t, plane, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: kubecarrier-system}, stringData: {kubeconfig: %q}}`, name, kubeconfig))
		peer := fmt.Sprintf(`{apiVersion: master.kubecarrier.io/v1alpha1, kind: Peer, metadata: {name: %[1]s}, spec: {kubeconfigSecret: {name: %[1]s}},
			status: {clusterUID: %[2]s, regions: [{provider: loodse, name: %[1]s-1}]}}`, name, system.GetUID())
		apply(t, plane, peer)
		apply(t, plane, peer, "status")
	}
	return plane
}

func apply(t *testing.T, server *regiontest.Server, manifest string, subresources ...string) {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &o.Object))
	d, err := dynamic.NewForConfig(server.Config())
	require.NoError(t, err)
	group := o.GroupVersionKind().GroupVersion()
	_, err = d.Resource(group.WithResource(strings.ToLower(o.GetKind())+"s")).Namespace(o.GetNamespace()).
		Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true}, subresources...)
	require.NoError(t, err)
}

// With a cache directory the gateway starts while the central plane is away, and serves the regions that it knew. When the
// plane is back, it follows the plane again.
func TestStartWithoutTheCentralPlane(t *testing.T) {
	s := newSite(t, regiontest.Options{})
	plane := newPlane(t, s)
	require.NoError(t, os.Mkdir(s.path("cache"), 0o700))
	c := s.config(func(c *config.Configuration) {
		c.Source.File, c.Source.Central, c.Source.CacheDirectory = "", &config.Central{KubeconfigFile: s.path("plane.kubeconfig")}, s.path("cache")
		c.Source.CacheWait = &metav1.Duration{Duration: 50 * time.Millisecond}
	})
	const path = "/regions/us-east-1.loodse/api/v1/namespaces"
	first := s.start(c)
	first.allUp()
	code, _ := first.get(path, "t-alice")
	require.Equal(t, http.StatusOK, code)
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(s.path("cache/peers.json"))
		return err == nil && strings.Contains(string(data), "us-east-1")
	}, time.Minute, time.Millisecond)
	first.end()

	plane.Partition(true)
	second := s.start(c)
	require.Contains(t, second.ready(), "[!]source: cannot be read; the peers are those of 20")
	require.Eventually(t, func() bool {
		code, _ := second.get(path, "t-alice")
		return code == http.StatusOK
	}, time.Minute, 5*time.Millisecond)
	_, metrics := second.plain("/metrics")
	require.Contains(t, metrics, "atoll_gateway_peers_from_cache 1\n")

	plane.Partition(false)
	second.allUp()
	d, err := dynamic.NewForConfig(plane.Config())
	require.NoError(t, err)
	peers := d.Resource(schema.GroupVersionResource{Group: "master.kubecarrier.io", Version: "v1alpha1", Resource: "peers"})
	require.NoError(t, peers.Delete(t.Context(), "us-east", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { code, _ := second.get(path, "t-alice"); return code == http.StatusNotFound }, time.Minute, 5*time.Millisecond)

	// Without the cache, a start waits for the plane.
	second.end()
	plane.Partition(true)
	c.Source.CacheDirectory = ""
	third := s.start(c)
	_, text := third.plain("/readyz")
	require.Contains(t, text, "[-]source failed: no peers were read yet\n")
	plane.Partition(false)
	third.allUp()
}
