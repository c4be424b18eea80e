// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
	synctargets "github.com/atoll-dev/atoll/syncer/targets"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// An unmodified syncer works at the address of its SyncTarget: it syncs an object down and its status up, and releases an
// object that moves to another cluster, one that is placed in several clusters, and one that is deleted. No write is refused.
func TestSyncer(t *testing.T) {
	s := newScene(t, Options{})
	cluster := regiontest.NewServer(regiontest.Options{})
	t.Cleanup(cluster.Close)
	up, err := region.APIFor(s.config("c1", "syncer-c1"))
	require.NoError(t, err)
	down, err := region.APIFor(cluster.Config())
	require.NoError(t, err)
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	agent, err := synctargets.NewAgent(up, down, syncer.Options{
		Target: "c1", Heartbeat: 100 * time.Millisecond, Discovery: 100 * time.Millisecond,
		Types: func(gr schema.GroupResource) bool {
			return gr == configMaps.GroupResource() || gr == deployments.GroupResource()
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- agent.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})

	own := s.own()
	s.put(configMaps, "ConfigMap", "other", at("c2"))
	s.put(configMaps, "ConfigMap", "mine", at("c1"))
	s.put(configMaps, "ConfigMap", "both", map[string]any{v1alpha1.StateLabelPrefix + "c1": "Sync", v1alpha1.StateLabelPrefix + "c2": "Sync"})
	web := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "labels": at("c1")},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}, "template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "web"}}, "spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "i"}}},
		}},
	}}
	_, err = own.Resource(deployments).Namespace("default").Create(t.Context(), web, metav1.CreateOptions{})
	require.NoError(t, err)
	below := func(gvr schema.GroupVersionResource, name string) error {
		_, err := down.Dynamic().Resource(gvr).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
		return err
	}
	eventually := func(what string, holds func() bool) {
		t.Helper()
		require.Eventually(t, holds, 20*time.Second, 10*time.Millisecond, what)
	}
	for _, name := range []string{"mine", "both"} {
		eventually(name+" is synced", func() bool { return below(configMaps, name) == nil })
	}
	eventually("web is synced", func() bool { return below(deployments, "web") == nil })
	_, err = down.Dynamic().Resource(deployments).Namespace("default").Patch(t.Context(), "web", types.MergePatchType, []byte(`{"status":{"observedGeneration":1,"replicas":1}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	eventually("the status of web is up", func() bool {
		o, err := own.Resource(deployments).Namespace("default").Get(t.Context(), "web", metav1.GetOptions{})
		require.NoError(t, err)
		replicas, _, _ := unstructured.NestedInt64(o.Object, "status", "replicas")
		return replicas == 1
	})
	eventually("there is a heartbeat", func() bool {
		o, err := own.Resource(targets).Get(t.Context(), "c1", metav1.GetOptions{})
		require.NoError(t, err)
		beat, _, _ := unstructured.NestedString(o.Object, "status", "lastSyncerHeartbeatTime")
		return beat != ""
	})

	mine := own.Resource(configMaps).Namespace("default")
	for name, labels := range map[string]string{
		"mine": `{"workloads.kcp.io/cluster":"c2"}`, "both": `{"state.workload.kcp.io/c1":null}`,
	} {
		_, err = mine.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":`+labels+`}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		eventually(name+" has gone below", func() bool { return apierrors.IsNotFound(below(configMaps, name)) })
		eventually(name+" is released", func() bool {
			o, err := mine.Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err)
			return len(o.GetFinalizers()) == 0
		})
	}
	require.NoError(t, own.Resource(deployments).Namespace("default").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	eventually("web is deleted", func() bool {
		_, err := own.Resource(deployments).Namespace("default").Get(t.Context(), "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err) && apierrors.IsNotFound(below(deployments, "web"))
	})
	require.True(t, apierrors.IsNotFound(below(configMaps, "other")))
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(t, s.refused)
}
