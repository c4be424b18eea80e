// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/syncer"
)

// If the type of a Service changes, the fields that the downstream cluster allocates change with
// it. A foreign Service of the same name is left alone. If the two Services have the same nodePort,
// the API server answers the create of the syncer with Invalid instead of AlreadyExists.
func TestServices(t *testing.T) {
	w := newWorld(t, syncer.Options{})
	w.up.create(services, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: NodePort, selector: {app: a}, ports: [{port: 80}]}}")
	w.down.has(services, "a", map[string]string{"spec.type": "NodePort"})
	w.up.patch(services, "a", `{"spec":{"type":"ClusterIP"}}`)
	w.down.has(services, "a", map[string]string{"spec.type": "ClusterIP", "spec.clusterIP": "*"})
	w.up.patch(services, "a", `{"spec":{"type":"LoadBalancer"}}`)
	w.down.has(services, "a", map[string]string{"spec.type": "LoadBalancer"})
	w.up.patch(services, "a", `{"spec":{"type":"ExternalName","externalName":"a.example.org","clusterIP":null,"clusterIPs":null}}`)
	w.down.has(services, "a", map[string]string{"spec.type": "ExternalName", "spec.clusterIP": ""})
	w.up.patch(services, "a", `{"spec":{"type":"ClusterIP","externalName":null}}`)
	w.down.has(services, "a", map[string]string{"spec.type": "ClusterIP", "spec.clusterIP": "*", "spec.externalName": ""})

	w.stop()
	w.start(t, syncer.Options{Rules: []syncer.Rule{{Type: schema.GroupKind{Kind: "Service"}, Path: "spec.ports[*].nodePort", Owner: syncer.Upstream}}})
	theirs := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte("{apiVersion: v1, kind: Service, metadata: {name: b}, spec: {type: NodePort, selector: {app: theirs}, ports: [{port: 80}]}}"), &theirs.Object))
	theirs, err := w.down.api.Dynamic().Resource(services).Namespace(w.down.namespace).Create(t.Context(), theirs, metav1.CreateOptions{FieldManager: "theirs"})
	require.NoError(t, err)
	port := theirs.Object["spec"].(map[string]any)["ports"].([]any)[0].(map[string]any)["nodePort"]
	w.up.create(services, fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: b}, spec: {type: NodePort, selector: {app: b}, ports: [{port: 80, nodePort: %v}]}}", port))
	planetest.Eventually(t, long, "the foreign Service is reported", func(context.Context) error {
		for _, s := range w.Status().Types {
			for _, p := range s.Problems {
				if p.Object.Name == "b" && p.Reason == syncer.ReasonForeign {
					return nil
				}
			}
		}
		return fmt.Errorf("%v", w.Status().Types)
	})
	now, err := w.down.get(t.Context(), services, "b")
	require.NoError(t, err)
	require.Equal(t, theirs.GetResourceVersion(), now.GetResourceVersion())
}

// Deleting a Job deletes its Pods. By default the API would orphan the Pods of a Job, unlike those
// of other workloads.
func TestJobTakesItsPods(t *testing.T) {
	w := newWorld(t, syncer.Options{})
	w.up.create(jobs, "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}")
	pods := func(ctx context.Context) (int, error) {
		list, err := w.down.api.Dynamic().Resource(gvr("", "v1", "pods")).Namespace(w.down.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, err
		}
		return len(list.Items), nil
	}
	w.up.has(jobs, "a", map[string]string{"status.succeeded": "1"})
	n, err := pods(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	w.up.delete(jobs, "a")
	w.up.lacks(jobs, "a")
	planetest.Eventually(t, long, "the Pods are gone", func(ctx context.Context) error {
		n, err := pods(ctx)
		if err == nil && n > 0 {
			err = fmt.Errorf("there are %d", n)
		}
		return err
	})
}
