// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/targets"
)

// The program parses the arguments in the manifests of targets.Manifests, and gets the values of
// the Install.
func TestManifestsRunThis(t *testing.T) {
	all, err := targets.Manifests(targets.Install{
		Target: "my-cluster", Upstream: "u", Kubeconfig: []byte("k"), Image: "i", Heartbeat: time.Minute, Unscheduled: time.Hour, Capacity: 2 * time.Hour,
		Types:  []schema.GroupResource{{Resource: "configmaps"}, {Group: "apps", Resource: "deployments"}},
		Permit: []syncer.Power{syncer.PermitStorageClasses, "things.future.k8s.io", syncer.PermitLeases},
	})
	require.NoError(t, err)
	deployment := &appsv1.Deployment{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(all[len(all)-1].Object, deployment))
	o, err := parse(deployment.Spec.Template.Spec.Containers[0].Args)
	require.NoError(t, err)
	require.Equal(t, "my-cluster", o.Target)
	require.Equal(t, "u", o.Upstream)
	require.Equal(t, targets.UpstreamKubeconfig, o.Up)
	require.Equal(t, time.Minute, o.Heartbeat)
	require.Equal(t, time.Hour, o.Unscheduled)
	require.Equal(t, 2*time.Hour, o.Capacity)
	require.ElementsMatch(t, []syncer.Power{syncer.PermitStorageClasses, "things.future.k8s.io", syncer.PermitLeases}, o.Permit)
	require.True(t, o.Types(schema.GroupResource{Resource: "configmaps"}))
	require.True(t, o.Types(schema.GroupResource{Group: "apps", Resource: "deployments"}))
	require.False(t, o.Types(schema.GroupResource{Resource: "secrets"}))
	require.Equal(t, filepath.Dir(targets.UpstreamKubeconfig), deployment.Spec.Template.Spec.Containers[0].VolumeMounts[0].MountPath)
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{{}, {"-target=a"}, {"-upstream=a"}, {"-target=a", "-upstream=b", "c"}, {"-nothing"}, {"-target=a", "-upstream=b", "-permit=all"}, {"-target=a", "-upstream=b", "-exec-plugins=/opt/login,aws"}} {
		_, err := parse(args)
		require.Error(t, err, "%v", args)
	}
	o, err := parse([]string{"-target=a", "-upstream=b", "-exec-plugins=/opt/login, /usr/local/bin/aws"})
	require.NoError(t, err)
	require.Equal(t, []string{"/opt/login", "/usr/local/bin/aws"}, o.Trust.Exec)
	require.ErrorContains(t, run(t.Context(), []string{"-target=a", "-upstream=" + filepath.Join(t.TempDir(), "none")}, io.Discard), "upstream")
}

// The commands of README.md can be parsed.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var all []options
	for line := range strings.Lines(string(page)) {
		if args, ok := strings.CutPrefix(strings.TrimSpace(line), "go run ./examples/syncer "); ok {
			o, err := parse(strings.Fields(args))
			require.NoError(t, err, line)
			all = append(all, o)
		}
	}
	require.Len(t, all, 3)
	require.Nil(t, all[0].Types)
	require.Nil(t, all[0].Upsync)
	require.Equal(t, syncer.RecreateCopy, all[0].OnDownstreamDelete)
	configMaps := schema.GroupResource{Resource: "configmaps"}
	require.True(t, all[1].Types(schema.GroupResource{Group: "apps", Resource: "deployments"}))
	require.True(t, all[1].Types(configMaps))
	require.True(t, all[1].Upsync(configMaps))
	require.False(t, all[1].Upsync(schema.GroupResource{Group: "apps", Resource: "deployments"}))
	require.Equal(t, syncer.DeleteUpstream, all[1].OnDownstreamDelete)
	require.Zero(t, all[1].Unscheduled)
	require.Equal(t, 30*time.Second, all[2].Unscheduled)
}

// The program syncs an object from one API server to the other.
func TestRun(t *testing.T) {
	crd, err := config.CRD("synctargets.workload.kcp.io")
	require.NoError(t, err)
	up := regiontest.NewServer(regiontest.Options{Name: "up", CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
	defer up.Close()
	down := regiontest.NewServer(regiontest.Options{Name: "down"})
	defer down.Close()
	dir := t.TempDir()
	write := func(name string, s *regiontest.Server) string {
		t.Helper()
		kubeconfig, err := s.Listen(t.Context())
		require.NoError(t, err)
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, kubeconfig, 0o600))
		return path
	}
	upPath, downPath := write("up", up), write("down", down)
	api := func(s *regiontest.Server) region.API {
		t.Helper()
		api, err := region.APIFor(s.Config())
		require.NoError(t, err)
		return api
	}
	create := func(gvr schema.GroupVersionResource, namespace string, obj map[string]any) {
		t.Helper()
		_, err := api(up).Dynamic().Resource(gvr).Namespace(namespace).Create(t.Context(), &unstructured.Unstructured{Object: obj}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	create(schema.GroupVersionResource{Group: "workload.kcp.io", Version: "v1alpha1", Resource: "synctargets"}, "", map[string]any{
		"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": "my-cluster"},
	})
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	create(configMaps, "default", map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"workloads.kcp.io/cluster": "my-cluster"}},
	})

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"-target=my-cluster", "-upstream=" + upPath, "-downstream=" + downPath, "-types=configmaps"}, io.Discard)
	}()
	copies := api(down).Dynamic().Resource(configMaps).Namespace("default")
	require.Eventually(t, func() bool {
		_, err := copies.Get(ctx, "a", metav1.GetOptions{})
		return err == nil
	}, 3*time.Minute, 20*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}

// With -workload-types the program leaves the replicas of a workload to a synced object of a declared type that scales it.
func TestWorkloadTypes(t *testing.T) {
	targetsCRD, err := config.CRD("synctargets.workload.kcp.io")
	require.NoError(t, err)
	typesCRD, err := config.CRD("workloadtypes.splitter.atoll.dev")
	require.NoError(t, err)
	scaledObjects := schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}
	served := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "scaledobjects.keda.sh"}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "keda.sh", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "scaledobjects", Singular: "scaledobject", Kind: "ScaledObject", ListKind: "ScaledObjectList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
		}}},
	}}
	up := regiontest.NewServer(regiontest.Options{Name: "up", CRDs: []*apiextensionsv1.CustomResourceDefinition{targetsCRD, typesCRD, served}})
	defer up.Close()
	down := regiontest.NewServer(regiontest.Options{Name: "down", CRDs: []*apiextensionsv1.CustomResourceDefinition{served}})
	defer down.Close()
	upAPI, err := region.APIFor(up.Config())
	require.NoError(t, err)
	downAPI, err := region.APIFor(down.Config())
	require.NoError(t, err)
	create := func(gvr schema.GroupVersionResource, namespace, manifest string) {
		t.Helper()
		obj := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(manifest), &obj.Object))
		_, err := upAPI.Dynamic().Resource(gvr).Namespace(namespace).Create(t.Context(), obj, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	declaration, err := os.ReadFile("../workloadtypes/scaledobject.yaml")
	require.NoError(t, err)
	create(v1alpha1.GroupVersion.WithResource("workloadtypes"), "", string(declaration))
	create(schema.GroupVersionResource{Group: "workload.kcp.io", Version: "v1alpha1", Resource: "synctargets"}, "", "{apiVersion: workload.kcp.io/v1alpha1, kind: SyncTarget, metadata: {name: edge}}")
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	const labelled = "labels: {workloads.kcp.io/cluster: edge}"
	create(scaledObjects, "default", "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web, "+labelled+"}, spec: {scaleTargetRef: {name: web}}}")
	create(deployments, "default", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, "+labelled+"}, spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}}")

	o, err := parse([]string{"-target=edge", "-upstream=x", "-workload-types", "-types=deployments.apps,scaledobjects.keda.sh"})
	require.NoError(t, err)
	start, err := agent(upAPI, downAPI, o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- start(ctx) }()
	there := func(gvr schema.GroupVersionResource, ok func(*unstructured.Unstructured) bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			obj, err := downAPI.Dynamic().Resource(gvr).Namespace("default").Get(ctx, "web", metav1.GetOptions{})
			return err == nil && ok(obj)
		}, 3*time.Minute, 20*time.Millisecond)
	}
	exists := func(*unstructured.Unstructured) bool { return true }
	there(deployments, exists)
	there(scaledObjects, exists)
	patch := func(api region.API, patch string) {
		_, err := api.Dynamic().Resource(deployments).Namespace("default").Patch(ctx, "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "someone"})
		require.NoError(t, err)
	}
	patch(downAPI, `{"spec":{"replicas":7}}`)
	patch(upAPI, `{"spec":{"minReadySeconds":5}}`)
	there(deployments, func(obj *unstructured.Unstructured) bool {
		n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "minReadySeconds")
		if n != 5 {
			return false
		}
		n, _, _ = unstructured.NestedInt64(obj.Object, "spec", "replicas")
		require.EqualValues(t, 7, n, "the autoscaler's")
		return true
	})
	cancel()
	require.NoError(t, <-done)
}

// The program uses a new kubeconfig in the file, and ignores an unusable kubeconfig.
func TestFollow(t *testing.T) {
	server := regiontest.NewServer(regiontest.Options{Name: "up"})
	defer server.Close()
	kubeconfig, err := server.Listen(t.Context())
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "k")
	require.NoError(t, os.WriteFile(path, kubeconfig, 0o600))
	s, err := open("upstream", path, region.Trust{})
	require.NoError(t, err)
	defer s.Close()
	said := make(chan string, 100)
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), funcr.New(func(_, args string) { said <- args }, funcr.Options{})))
	done := make(chan error, 1)
	require.NoError(t, os.WriteFile(path, []byte("nonsense"), 0o600))
	go func() { done <- s.follow(ctx, 5*time.Millisecond) }()
	require.Contains(t, <-said, "is not used")
	next := append([]byte("# another\n"), kubeconfig...)
	require.NoError(t, os.WriteFile(path, next, 0o600))
	for text := ""; !strings.Contains(text, "New credentials are used"); {
		select {
		case text = <-said:
		case <-time.After(time.Minute):
			require.Fail(t, "the new file is not used")
		}
	}
	cancel()
	require.NoError(t, <-done)
	require.Equal(t, next, s.read)
}

// The program logs the cause if its API servers are unreachable.
func TestLogs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, logtest.Kubeconfig(), 0o600))
	lines := logtest.New()
	logtest.Run(t, func(ctx context.Context) error {
		return run(ctx, []string{"-target=my-cluster", "-upstream=" + path, "-downstream=" + path}, lines)
	})
	lines.Await(t, `"logger":"agent"`, "synctargets", "connection refused")
}
