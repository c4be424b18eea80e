// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package workloadtypes_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// published returns the CustomResourceDefinition in a file of a published Go module. The other projects have definitions
// of hundreds of kilobytes, so they are downloaded, and only if ATOLL_PUBLISHED is set.
func published(t *testing.T, module, file string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	if os.Getenv("ATOLL_PUBLISHED") == "" {
		t.Skip("set ATOLL_PUBLISHED=1: it downloads the module " + module)
	}
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	require.NoError(t, err, string(out))
	var m struct{ Dir string }
	require.NoError(t, json.Unmarshal(out, &m))
	data, err := os.ReadFile(filepath.Join(m.Dir, file))
	require.NoError(t, err)
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.Unmarshal(data, &crd))
	crd.Spec.Conversion = nil // no webhook answers
	return &crd
}

// divide divides a parent of the declared type over the clusters a and b on an API server with the published schema, and
// returns the status of the parent after each shard has reported.
func divide(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, file, parent string, reports map[string]string) *unstructured.Unstructured {
	t.Helper()
	s := regiontest.NewServer(regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
	t.Cleanup(s.Close)
	api, err := region.APIFor(s.Config())
	require.NoError(t, err)
	k := kind(t, file)
	split, err := splitter.New(api, splitter.StaticClusters("a", "b"), splitter.Options{Kinds: []splitter.Kind{k}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- split.Start(ctx) }()
	defer func() { cancel(); require.NoError(t, <-done) }()
	client := api.Dynamic().Resource(k.Resource()).Namespace("default")
	_, err = client.Create(ctx, object(t, parent), metav1.CreateOptions{})
	require.NoError(t, err)
	for name, report := range reports {
		data, err := yaml.YAMLToJSON([]byte("status: " + report))
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, err := client.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: "syncer"}, "status")
			return err == nil
		}, time.Minute, 10*time.Millisecond, name)
	}
	var obj *unstructured.Unstructured
	require.Eventually(t, func() bool {
		obj, err = client.Get(ctx, "web", metav1.GetOptions{})
		require.NoError(t, err)
		conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		for _, c := range conditions {
			if c.(map[string]any)["message"] == "in all 2 clusters" {
				return obj.GetFinalizers()[0] == v1alpha1.ShardsFinalizer
			}
		}
		return false
	}, time.Minute, 10*time.Millisecond)
	return obj
}

// The published schema of Rollouts accepts the shards and the status that the Splitter writes.
func TestPublishedRollout(t *testing.T) {
	crd := published(t, "github.com/argoproj/argo-rollouts@v1.9.0", "manifests/crds/rollout-crd.yaml")
	report := func(n string) string {
		return `{observedGeneration: "1", replicas: ` + n + `, availableReplicas: ` + n + `, HPAReplicas: ` + n + `, selector: app=web, phase: Healthy,
			conditions: [{type: Healthy, status: "True", reason: RolloutHealthy, message: m, lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T00:00:00Z"}]}`
	}
	obj := divide(t, crd, "rollout.yaml", rollout, map[string]string{"web--a": report("2"), "web--b": report("3")})
	status, _, _ := unstructured.NestedMap(obj.Object, "status")
	require.Equal(t, "Healthy", status["phase"])
	require.Equal(t, "1", status["observedGeneration"])
	require.EqualValues(t, 5, status["HPAReplicas"])
	require.Equal(t, "app=web", status["selector"])
}

// The same for Services of Knative.
func TestPublishedKnativeService(t *testing.T) {
	crd := published(t, "knative.dev/serving@v0.51.0", "config/core/300-resources/service.yaml")
	report := `{observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}`
	obj := divide(t, crd, "knative-service.yaml", `{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: web}, spec: {template: {spec: {containers: [{image: web}]}}}}`,
		map[string]string{"web--a": report, "web--b": report})
	generation, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	require.EqualValues(t, 1, generation)
}

// The published schema of ScaledObjects has the declared fields.
func TestPublishedScaledObject(t *testing.T) {
	crd := published(t, "github.com/kedacore/keda/v2@v2.21.0", "config/crd/bases/keda.sh_scaledobjects.yaml")
	of := read(t, "scaledobject.yaml")
	require.Equal(t, of.GroupKind().Kind, crd.Spec.Names.Kind)
	require.Equal(t, of.Resource().Resource, crd.Spec.Names.Plural)
	require.Equal(t, of.Resource().Version, crd.Spec.Versions[0].Name)
	target := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["scaleTargetRef"]
	for _, field := range []string{"apiVersion", "kind", "name"} {
		require.Contains(t, target.Properties, field)
	}
}
