// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

var serviceClusters = fanout.ServiceClusters().Resource

func TestGatherNamesRegions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring, c := newRing(t)
		serve(t, ring)
		_, err := c.Add(t.Context(), newAccount("loodse", []any{"Provider"}), fanout.AddOptions{})
		require.NoError(t, err)
		sc := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"kubeconfigSecret": map[string]any{"name": "db"}}}}
		sc.SetAPIVersion("kubecarrier.io/v1alpha1")
		sc.SetKind("ServiceCluster")
		sc.SetNamespace("loodse")
		sc.SetName("eu-west-1")
		_, err = c.Add(t.Context(), sc, fanout.AddOptions{Target: "eu-west"})
		require.NoError(t, err)
		configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		nobodys := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "nobodies"}
		for peer, namespace := range map[region.PeerName]string{"eu-west": "loodse", "us-east": "default"} {
			offer := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"plan": "small"}}}
			offer.SetAPIVersion("v1")
			offer.SetKind("ConfigMap")
			offer.SetName("offer")
			_, err := connTo(t, ring, peer).Dynamic().Resource(configMaps).Namespace(namespace).Create(t.Context(), offer, metav1.CreateOptions{})
			require.NoError(t, err)
		}

		g, err := Gather(t.Context(), ring, []schema.GroupVersionResource{configMaps, serviceClusters, nobodys}, GatherOptions{
			ListOptions: metav1.ListOptions{Limit: 1},
		})
		require.NoError(t, err)
		require.Empty(t, g.Unanswered)
		type line struct {
			resource, namespace, name string
			regions                   []region.Key
		}
		var lines []line
		for _, e := range g.Entries {
			lines = append(lines, line{e.Resource.Resource, e.Object.GetNamespace(), e.Object.GetName(), e.Regions})
		}
		require.Equal(t, []line{
			{"configmaps", "default", "offer", []region.Key{usEast1}},
			{"configmaps", "loodse", "offer", []region.Key{euWest1}},
			{"serviceclusters", "loodse", "eu-west-1", []region.Key{euWest1}},
		}, lines, "guards are not listed")
		text, err := json.Marshal(g.Entries)
		require.NoError(t, err)
		for _, word := range []string{"fanout", "ap-south", "eu-west\"", "us-east\"", "managedFields"} {
			require.NotContains(t, string(text), word)
		}
	})
}

// Gather reports the regions of an unreachable peer as unanswered.
func TestGatherTellsWhatIsMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring, _ := newRing(t)
		serve(t, ring)
		ring.Partition("eu-west", true)
		g, err := Gather(t.Context(), ring, []schema.GroupVersionResource{serviceClusters}, GatherOptions{})
		require.ErrorContains(t, err, "eu-west")
		require.Equal(t, []region.Key{euWest1, another}, g.Unanswered)
		g, err = Gather(t.Context(), ring, []schema.GroupVersionResource{serviceClusters}, GatherOptions{Policy: region.BestEffort()})
		require.NoError(t, err)
		require.Equal(t, []region.Key{euWest1, another}, g.Unanswered)
	})
}

// Gather lists a primary only while it is in effect. It lists objects without a claim.
func TestGatherSkipsWhatIsNotInEffect(t *testing.T) {
	t.Parallel()
	for stage, listed := range map[fanoutv1alpha1.Stage]bool{
		fanoutv1alpha1.StageReserved:   false,
		fanoutv1alpha1.StageConfigured: true,
		fanoutv1alpha1.StageActive:     true,
		fanoutv1alpha1.StageRemoving:   false,
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"fanout": map[string]any{
			"stage": string(stage),
			"claim": map[string]any{"operation": "o", "peer": "eu-west", "role": string(fanoutv1alpha1.RolePrimary)},
		}}}}
		require.Equal(t, listed, !skipped(obj), stage)
	}
	require.False(t, skipped(&unstructured.Unstructured{Object: map[string]any{}}), "an object without a claim is listed")
}
