// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

var (
	wides      = v1alpha1.GroupVersion.WithResource("clusterplacementpolicies")
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// wide creates a ClusterPlacementPolicy.
func (w *world) wide(name, spec string) {
	w.t.Helper()
	manifest := fmt.Sprintf("{apiVersion: splitter.atoll.dev/v1alpha1, kind: ClusterPlacementPolicy, metadata: {name: %s}, spec: %s}", name, spec)
	_, err := w.api.Dynamic().Resource(wides).Create(w.t.Context(), unstructuredOf(w.t, manifest), metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w *world) namespace(labels string) {
	w.t.Helper()
	of := w.api.Dynamic().Resource(namespaces)
	_, err := of.Patch(w.t.Context(), "default", types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default","labels":`+labels+`}}`), metav1.PatchOptions{FieldManager: "user"})
	require.NoError(w.t, err)
}

// A PlacementPolicy decides before all ClusterPlacementPolicies, and these before Options.Default.
func TestPoliciesOfTheNamespaceDecideFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		one, two, three := cluster("a", "tier=one"), cluster("b", "tier=two"), cluster("c", "tier=three")
		w.create(deployments, deployment("web", 2, ""))
		w.startPlacement(placement.Options{Default: &v1alpha1.PlacementPolicySpec{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "three"}}}}, one, two, three)
		require.Equal(t, []string{"NONE -> c"}, w.happened("web"))

		w.wide("p", "{clusterSelector: {matchLabels: {tier: two}}}")
		require.Equal(t, []string{"c -> b"}, w.happened("web"))
		require.Equal(t, "ClusterPlacementPolicy/p", w.annotation(deployments, "web", "placed-by"))
		policy, err := w.api.Dynamic().Resource(wides).Get(t.Context(), "p", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, int64(1), policy.Object["status"].(map[string]any)["clusters"])

		w.policy("p", "{clusterSelector: {matchLabels: {tier: one}}}")
		require.Equal(t, []string{"b -> a"}, w.happened("web"))
		require.Equal(t, "p", w.annotation(deployments, "web", "placed-by"))

		// Less specific policies change nothing, whatever their priority, and even if they cannot be read.
		w.wide("urgent", "{priority: 100}")
		w.wide("broken", "{priority: 200, selector: {matchExpressions: [{key: app, operator: Near}]}}")
		require.Empty(t, w.happened("web"))

		// The policy of the namespace is gone, and an unreadable policy might select the object: it stays.
		w.remove(policies, "p")
		require.Empty(t, w.happened("web"))
		require.NoError(t, w.api.Dynamic().Resource(wides).Delete(t.Context(), "broken", metav1.DeleteOptions{}))
		require.Equal(t, []string{"a -> a,b,c"}, w.happened("web"))
		require.Equal(t, "ClusterPlacementPolicy/urgent", w.annotation(deployments, "web", "placed-by"))
		w.Reset()
		time.Sleep(time.Hour)
		require.Empty(t, w.writes(), "at rest")
	})
}

// A ClusterPlacementPolicy with a namespaceSelector decides in the namespaces with these labels. An object whose
// namespace leaves the selection stays, like one whose policy is deleted.
func TestClusterWidePoliciesSelectNamespaces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.create(deployments, deployment("web", 2, ""))
		w.wide("team", "{namespaceSelector: {matchLabels: {team: web}}, maxClusters: 1}")
		// An unreadable policy of other namespaces does not matter.
		w.wide("broken", "{priority: 2, namespaceSelector: {matchLabels: {team: none}}, selector: {matchExpressions: [{key: app, operator: Near}]}}")
		w.startPlacement(placement.Options{}, cluster("a"))
		require.Empty(t, w.happened("web"), "the namespace is not known")
		w.namespace(`{"team":"other"}`)
		require.Empty(t, w.happened("web"))
		w.namespace(`{"team":"web"}`)
		require.Equal(t, []string{"NONE -> a"}, w.happened("web"))
		w.namespace(`{}`)
		require.Empty(t, w.happened("web"))
		require.Equal(t, "ClusterPlacementPolicy/team", w.annotation(deployments, "web", "placed-by"))
	})
}

// On an API server with the CRDs of an earlier release, PlacementPolicies and the default work as before.
func TestWithoutClusterWidePolicies(t *testing.T) {
	old, err := compile("placementpolicies.splitter.atoll.dev")
	require.NoError(t, err)
	bubble(t, func(t *testing.T) {
		w := worldOf(t, old)
		w.create(deployments, deployment("web", 2, ""))
		w.startPlacement(placement.Options{Default: &v1alpha1.PlacementPolicySpec{}}, cluster("a"))
		require.Equal(t, []string{"NONE -> a"}, w.happened("web"))
	})
}

// While the ClusterPlacementPolicies cannot be read, only the policies of namespaces decide.
func TestClusterWidePoliciesThatCannotBeRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.Inject(regiontest.Fault{Verb: "list", Resource: wides.GroupResource(), Times: 20, Do: regiontest.Refuse(503)})
		w.create(deployments, deployment("web", 2, ""))
		w.startPlacement(placement.Options{Default: &v1alpha1.PlacementPolicySpec{}}, cluster("a"))
		require.Empty(t, w.happened("web"), "a cluster-wide policy might select it")
		w.policy("p", "{}")
		require.Equal(t, []string{"NONE -> a"}, w.happened("web"))
		w.remove(policies, "p")
		require.Empty(t, w.happened("web"))
		time.Sleep(time.Hour)
		require.Equal(t, []string{"a -> a"}, w.happened("web"))
		require.Equal(t, v1alpha1.PlacedByDefault, w.annotation(deployments, "web", "placed-by"))
	})
}
