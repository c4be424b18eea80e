// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/cmd/atoll-manager/config"
)

const workloadType = `{apiVersion: splitter.atoll.dev/v1alpha1, kind: WorkloadType, metadata: {name: %[1]s.example.org}, spec: {
	resource: {group: example.org, version: v1, resource: %[1]s, kind: %[2]s}, status: {available: status.availableReplicas}}}`

// define adds a type of example.org/v1 that accepts any spec and status.
func (p *plants) define(plural, kind string) {
	p.t.Helper()
	p.apply("plane", fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]s.example.org}, spec: {
		group: example.org, scope: Namespaced, names: {plural: %[1]s, kind: %[2]s}, versions: [{name: v1, served: true, storage: true, subresources: {status: {}},
		schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`, plural, kind))
	p.eventually(kind+" is served", func() bool {
		_, err := p.client("plane", "example.org/v1", kind, "default").List(p.t.Context(), metav1.ListOptions{})
		return err == nil
	})
}

// divided waits until a workload has replicas in both clusters.
func (p *plants) divided(apiVersion, kind, name string) {
	p.t.Helper()
	p.eventually(kind+" "+name+" is divided", func() bool {
		for _, cluster := range []string{"one", "two"} {
			obj, err := p.client("plane", apiVersion, kind, "default").Get(p.t.Context(), name+"--"+cluster, metav1.GetOptions{})
			if err != nil {
				return false
			}
			if n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); n != 2 {
				return false
			}
		}
		return true
	})
}

// The manager divides the types of its configuration, those of a file, and those of a WorkloadType that is created while
// it runs.
func TestWorkloads(t *testing.T) {
	p := newPlants(t)
	p.define("engines", "Engine")
	p.define("rockets", "Rocket")
	file := filepath.Join(t.TempDir(), "engines.yaml")
	require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintf(workloadType, "engines", "Engine")), 0o600))
	c, err := config.Parse([]byte(`{apiVersion: manager.atoll.dev/v1alpha1, kind: ManagerConfiguration, health: {address: "127.0.0.1:0"}, workloads: {typeFiles: [` + file + `]}}`))
	require.NoError(t, err)
	m, err := New(c, Options{Identity: "a", Central: p.servers["plane"].Config()})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), logTo(t)))
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	defer func() { cancel(); require.NoError(t, <-ended) }()

	p.apply("plane", `{apiVersion: operator.kubecarrier.io/v1alpha1, kind: KubeCarrier, metadata: {name: kubecarrier}, spec: {master: true}}`)
	for _, cluster := range []string{"one", "two"} {
		p.apply("plane", `{apiVersion: workload.kcp.io/v1alpha1, kind: SyncTarget, metadata: {name: `+cluster+`}, spec: {}}`)
		_, err := p.client("plane", "workload.kcp.io/v1alpha1", "SyncTarget", "").Patch(t.Context(), cluster, types.MergePatchType, []byte(`{"status":{"conditions":[
			{"type":"Ready","status":"True","reason":"Ready","message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
	}
	p.apply("plane", `{apiVersion: splitter.atoll.dev/v1alpha1, kind: PlacementPolicy, metadata: {name: all, namespace: default}, spec: {}}`)
	p.apply("plane", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: 4, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}}`)
	p.apply("plane", `{apiVersion: example.org/v1, kind: Engine, metadata: {name: x, namespace: default}, spec: {replicas: 4}}`)
	p.apply("plane", `{apiVersion: example.org/v1, kind: Rocket, metadata: {name: x, namespace: default}, spec: {replicas: 4}}`)
	p.divided("apps/v1", "Deployment", "web")
	p.divided("example.org/v1", "Engine", "x")
	_, err = p.client("plane", "example.org/v1", "Rocket", "default").Get(t.Context(), "x--one", metav1.GetOptions{})
	require.Error(t, err, "not declared yet")

	p.apply("plane", fmt.Sprintf(workloadType, "rockets", "Rocket"))
	p.divided("example.org/v1", "Rocket", "x")
	p.apply("plane", fmt.Sprintf(workloadType, "engines", "Engine"))
	p.eventually("the file declares it", func() bool {
		obj, err := p.client("plane", "splitter.atoll.dev/v1alpha1", "WorkloadType", "").Get(t.Context(), "engines.example.org", metav1.GetOptions{})
		require.NoError(t, err)
		conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		return len(conditions) == 1 && conditions[0].(map[string]any)["message"] == "spec.resource: engines.example.org is declared by a file of the program"
	})

	require.NoError(t, p.client("plane", "splitter.atoll.dev/v1alpha1", "WorkloadType", "").Delete(t.Context(), "rockets.example.org", metav1.DeleteOptions{}))
	p.apply("plane", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: other, namespace: default}, spec: {replicas: 4, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}}`)
	p.divided("apps/v1", "Deployment", "other")
	p.divided("example.org/v1", "Rocket", "x") // the deletion removes no shards
}

// New names the file and its fault.
func TestWorkloadFiles(t *testing.T) {
	p := newPlants(t)
	dir := t.TempDir()
	for name, tt := range map[string]struct{ content, want string }{
		"missing":  {"", "workloads.typeFiles[0]: open "},
		"unknown":  {"kind: X", "accepted: splitter.atoll.dev/v1alpha1 WorkloadType"},
		"fault":    {`{apiVersion: splitter.atoll.dev/v1alpha1, kind: WorkloadType, metadata: {name: x.y}, spec: {resource: {}}}`, "x.y: spec.resource.version: must be set"},
		"built in": {`{apiVersion: splitter.atoll.dev/v1alpha1, kind: WorkloadType, metadata: {name: jobs.batch}, spec: {resource: {group: batch, version: v1, resource: jobs, kind: Job}, division: OneCluster}}`, "jobs.batch is built in"},
		"placed": {`{apiVersion: splitter.atoll.dev/v1alpha1, kind: WorkloadType, metadata: {name: ingresses.networking.k8s.io}, spec: {
			resource: {group: networking.k8s.io, version: v1, resource: ingresses, kind: Ingress}, division: OneCluster}}`, "have ingresses.networking.k8s.io twice"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			if tt.content != "" {
				require.NoError(t, os.WriteFile(path, []byte(tt.content), 0o600))
			}
			c, err := config.Parse([]byte(`{apiVersion: manager.atoll.dev/v1alpha1, kind: ManagerConfiguration, workloads: {typeFiles: ["` + path + `"]}}`))
			require.NoError(t, err)
			_, err = New(c, Options{Identity: "a", Central: p.servers["plane"].Config()})
			require.ErrorContains(t, err, tt.want)
		})
	}
}
