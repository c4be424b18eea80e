// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/syncer"
)

// synced waits until an upstream object is marked as synced, by a condition or an annotation.
func (s *side) synced(gvr schema.GroupVersionResource, name string, asCondition bool) {
	s.t.Helper()
	planetest.Eventually(s.t, long, fmt.Sprintf("%s %s says that it is synced", gvr.Resource, name), func(ctx context.Context) error {
		obj, err := s.get(ctx, gvr, name)
		if err != nil {
			return err
		}
		var said struct{ Status string }
		all, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		for _, c := range all {
			if condition := c.(map[string]any); asCondition && condition["type"] == "Synced" {
				said.Status, _ = condition["status"].(string)
			}
		}
		if text := obj.GetAnnotations()["synced.syncer.atoll.dev/"+s.namespace]; !asCondition && text != "" {
			if err := json.Unmarshal([]byte(text), &said); err != nil {
				return err
			}
		}
		if said.Status != "True" {
			return fmt.Errorf("annotations %v, status %v", obj.GetAnnotations(), obj.Object["status"])
		}
		return nil
	})
}

// TestOptions checks optional behavior on real servers: fields synced upstream, immutable objects
// recreated, conditions, objects synced upstream, and dry runs.
func TestOptions(t *testing.T) {
	of := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	opts := syncer.Options{
		Conditions: true,
		Upsync:     func(gr schema.GroupResource) bool { return gr == configMaps.GroupResource() },
		Rules: []syncer.Rule{
			{Type: of, Path: "spec.replicas", Owner: syncer.FirstWriter, Up: true},
			{Type: of, Path: "spec.selector", Change: syncer.Recreate},
		},
	}
	w := newWorld(t, opts)
	ingresses := gvr("networking.k8s.io", "v1", "ingresses")
	w.up.create(deployments, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 2, selector: {matchLabels: {app: a}}, template: "+pod+"}}")
	w.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}")
	w.up.create(services, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: {app: a}, ports: [{port: 80}]}}")
	w.up.create(ingresses, "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}")
	w.up.has(deployments, "a", map[string]string{"status.readyReplicas": "2"})
	w.up.synced(deployments, "a", true)
	w.up.synced(services, "a", true)
	w.up.synced(configMaps, "a", false)
	w.up.synced(ingresses, "a", false)

	w.down.patch(deployments, "a", `{"spec":{"replicas":3}}`)
	w.up.has(deployments, "a", map[string]string{"spec.replicas": "3", "status.readyReplicas": "3"})
	w.up.patch(deployments, "a", `{"spec":{"replicas":1}}`)
	w.up.has(deployments, "a", map[string]string{"spec.replicas": "3"})

	born := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "v"},
		"metadata": map[string]any{"name": "born", "labels": map[string]any{"state.workload.kcp.io/" + w.down.namespace: "Upsync"}},
	}}
	_, err := w.down.api.Dynamic().Resource(configMaps).Namespace(w.down.namespace).Create(t.Context(), born, metav1.CreateOptions{})
	require.NoError(t, err)
	w.up.has(configMaps, "born", map[string]string{"data.k": "v"})
	w.down.patch(configMaps, "born", `{"data":{"k":null,"l":"w"}}`)
	w.up.has(configMaps, "born", map[string]string{"data.k": "", "data.l": "w"})

	w.rest(t, []kind{{gvr: deployments}, {gvr: configMaps}, {gvr: services}, {gvr: ingresses}})
	for change, err := range w.Diff(t.Context()) {
		require.NoError(t, err)
		require.NotEqual(t, w.up.namespace, change.Object.Namespace, "%v", change)
	}
	w.down.delete(configMaps, "born")
	w.up.lacks(configMaps, "born")

	// The next syncer changes the selector of the downstream Deployment. An API server rejects this
	// change, so the syncer must recreate the Deployment.
	w.stop()
	opts.Transform = []syncer.Transformer{func(obj *unstructured.Unstructured) error {
		if obj.GroupVersionKind().GroupKind() != of {
			return nil
		}
		return errors.Join(unstructured.SetNestedField(obj.Object, "other", "spec", "selector", "matchLabels", "app"),
			unstructured.SetNestedField(obj.Object, "other", "spec", "template", "metadata", "labels", "app"))
	}}
	w.start(t, opts)
	w.down.has(deployments, "a", map[string]string{"spec.selector.matchLabels.app": "other", "status.readyReplicas": "*"})
	w.up.synced(deployments, "a", true)
}
