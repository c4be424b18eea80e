// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package types_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/schema"
)

var crdResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// elsewhere is appended to groups without a dot: kube-apiserver accepts CRDs only in groups with a
// dot.
const elsewhere = ".example.com"

func apiOf(t *testing.T, p *plane.Plane) region.API {
	t.Helper()
	api, err := region.APIFor(p.Config())
	require.NoError(t, err)
	return api
}

// learned is the discovery data of a plane.
type learned struct {
	documents map[string]*schema.Document
	lists     map[string]*metav1.APIResourceList
}

func learn(t *testing.T, api region.API) learned {
	t.Helper()
	out := learned{documents: map[string]*schema.Document{}, lists: map[string]*metav1.APIResourceList{}}
	_, lists, err := api.Discovery().ServerGroupsAndResources()
	require.NoError(t, err)
	for _, list := range lists {
		out.lists[list.GroupVersion] = list
	}
	// A starting server publishes its documents one after another.
	planetest.Eventually(t, long, "all types have a document", func(context.Context) error {
		paths, err := api.Discovery().OpenAPIV3().Paths()
		if err != nil {
			return err
		}
		for groupVersion := range out.lists {
			name := "apis/" + groupVersion
			if !strings.Contains(groupVersion, "/") {
				name = "api/" + groupVersion
			}
			path, ok := paths[name]
			if !ok {
				return fmt.Errorf("none is at %s", name)
			}
			data, err := path.Schema("application/json")
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			out.documents[groupVersion], err = schema.ReadDocument(data)
			require.NoError(t, err, name)
		}
		return nil
	})
	return out
}

// crd returns the CRD of a built-in type, in a group with a dot.
func (l learned) crd(t *testing.T, groupVersion, plural string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	r, err := schema.ResourceOf(l.lists[groupVersion], plural)
	require.NoError(t, err)
	s, err := l.documents[groupVersion].Schema(r.GroupVersionKind())
	require.NoError(t, err)
	group := r.Group
	if r.Group == "" {
		// This kind is in the core group, which a CRD cannot have. So the test uses only its
		// schema.
		group = "core"
		r.Group = "apps"
		out, err := l.documents["apps/v1"].CustomResourceDefinition(schema.Resource{
			Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment", Singular: r.Singular, Namespaced: r.Namespaced, Status: r.Status,
		})
		require.NoError(t, err)
		out.Spec.Names.Plural, out.Spec.Names.Kind, out.Spec.Names.ListKind = r.Plural, r.Kind, r.Kind+"List"
		out.Spec.Versions[0].Schema.OpenAPIV3Schema = s
		return rename(out, group+elsewhere)
	}
	out, err := l.documents[groupVersion].CustomResourceDefinition(r)
	require.NoError(t, err)
	if !strings.Contains(group, ".") {
		group += elsewhere
	}
	return rename(out, group)
}

func rename(crd *apiextensionsv1.CustomResourceDefinition, group string) *apiextensionsv1.CustomResourceDefinition {
	crd.Name, crd.Spec.Group = crd.Spec.Names.Plural+"."+group, group
	return crd
}

func toObject(t *testing.T, v any) *unstructured.Unstructured {
	t.Helper()
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: o}
}

// Each stored type of a real API server becomes a CRD that a real API server accepts. If the group
// of the type has no dot, the group of the CRD gets a suffix.
func TestEveryTypeBecomesACRD(t *testing.T) {
	planes := planetest.Shared(t, 2)
	types := learn(t, apiOf(t, planes[0]))
	target := apiOf(t, planes[1]).Dynamic().Resource(crdResource)
	taken := 0
	for groupVersion, list := range types.lists {
		if strings.Contains(groupVersion, "apiregistration") || strings.Contains(groupVersion, "authentication") || strings.Contains(groupVersion, "authorization.k8s.io") && !strings.Contains(groupVersion, "rbac") {
			continue // served by the aggregator, or not stored
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || r.Name == "bindings" {
				continue
			}
			crd := toObject(t, types.crd(t, groupVersion, r.Name))
			if strings.HasSuffix(crd.GetName(), ".k8s.io") {
				require.NotEmpty(t, crd.GetAnnotations()[apiextensionsv1.KubeAPIApprovedAnnotation])
			}
			_, err := target.Create(t.Context(), crd, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			require.NoError(t, err, "%s %s", groupVersion, r.Name)
			taken++
		}
	}
	require.Greater(t, taken, 40)
	t.Logf("%d types", taken)
}

func manifests(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile("../../../../syncer/schema/testdata/manifests.yaml")
	require.NoError(t, err)
	out := map[string]*unstructured.Unstructured{}
	for text := range strings.SplitSeq(string(data), "\n---\n") {
		o := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object))
		out[o.GetKind()] = o
	}
	return out
}

// Manifests of built-in types can be stored as CRD objects without losing a field, and the built-in
// type accepts the stored objects.
func TestManifestsAsCRDs(t *testing.T) {
	planes := planetest.Shared(t, 2)
	source, target := apiOf(t, planes[0]), apiOf(t, planes[1])
	types := learn(t, source)
	namespace := planetest.Namespace(t, planes...)
	all := manifests(t)
	for kind, at := range map[string][2]string{"Deployment": {"apps/v1", "deployments"}, "StatefulSet": {"apps/v1", "statefulsets"}, "Service": {"v1", "services"}, "Job": {"batch/v1", "jobs"}} {
		crd := types.crd(t, at[0], at[1])
		_, err := target.Dynamic().Resource(crdResource).Create(t.Context(), toObject(t, crd), metav1.CreateOptions{})
		require.NoError(t, err)
		gvr := runtimeschema.GroupVersionResource{Group: crd.Spec.Group, Version: "v1", Resource: at[1]}
		manifest := all[kind].DeepCopy()
		manifest.SetAPIVersion(gvr.GroupVersion().String())
		manifest.SetNamespace(namespace)
		var stored *unstructured.Unstructured
		planetest.Eventually(t, long, kind+" is accepted", func(ctx context.Context) error {
			stored, err = target.Dynamic().Resource(gvr).Namespace(namespace).Create(ctx, manifest, metav1.CreateOptions{FieldValidation: "Strict"})
			if apierrors.IsNotFound(err) {
				return err
			}
			require.NoError(t, err)
			return nil
		})
		requireWithin(t, kind, all[kind].Object["spec"], stored.Object["spec"])
		// The built-in type accepts the stored object.
		back := stored.DeepCopy()
		back.SetAPIVersion(at[0])
		for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation"} {
			unstructured.RemoveNestedField(back.Object, "metadata", field)
		}
		gv, err := runtimeschema.ParseGroupVersion(at[0])
		require.NoError(t, err)
		again, err := source.Dynamic().Resource(gv.WithResource(at[1])).Namespace(namespace).Create(t.Context(), back, metav1.CreateOptions{FieldValidation: "Strict"})
		require.NoError(t, err)
		requireWithin(t, kind, normalized(all[kind].Object["spec"]), normalized(again.Object["spec"]))
	}
}

// normalized removes quantities, which API servers rewrite.
func normalized(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, value := range v {
			if k != "requests" && k != "limits" && k != "divisor" {
				out[k] = normalized(value)
			}
		}
		return out
	case []any:
		var out []any
		for _, value := range v {
			out = append(out, normalized(value))
		}
		return out
	}
	return v
}

// requireWithin requires that every field of a manifest is in the stored object.
func requireWithin(t *testing.T, path string, manifest, stored any) {
	t.Helper()
	switch manifest := manifest.(type) {
	case map[string]any:
		object, ok := stored.(map[string]any)
		require.True(t, ok, "%s is %v", path, stored)
		for k, v := range manifest {
			require.Contains(t, object, k, path)
			requireWithin(t, path+"."+k, v, object[k])
		}
	case []any:
		list, ok := stored.([]any)
		require.True(t, ok, "%s is %v", path, stored)
		require.Len(t, list, len(manifest), path)
		for i, v := range manifest {
			requireWithin(t, fmt.Sprintf("%s[%d]", path, i), v, list[i])
		}
	default:
		require.EqualValues(t, manifest, stored, path)
	}
}

// An unmodified API server without apps/v1 rejects a CRD in that group only because of the name of
// the group. Without that check, as in the control plane of the multi-cluster proposal, the type is
// served under its own name, with status and scale.
func TestDeploymentUnderItsOwnName(t *testing.T) {
	dir := t.TempDir()
	source := planetest.Shared(t, 1)[0]
	upstream := planetest.New(t, plane.Options{Name: "upstream", Dir: dir, APIServerFlags: []string{"--runtime-config=apps/v1=false"}})
	types := learn(t, apiOf(t, source))
	api := apiOf(t, upstream)

	r, err := schema.ResourceOf(types.lists["apps/v1"], "deployments")
	require.NoError(t, err)
	crd, err := types.documents["apps/v1"].CustomResourceDefinition(r)
	require.NoError(t, err)
	_, err = api.Dynamic().Resource(crdResource).Create(t.Context(), toObject(t, crd), metav1.CreateOptions{})
	require.ErrorContains(t, err, `spec.group: Invalid value: "apps": should be a domain with at least one dot`)
	require.NotContains(t, err.Error(), "openAPIV3Schema")

	store(t, dir, crd)
	deployments := api.Dynamic().Resource(runtimeschema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace("default")
	manifest := manifests(t)["Deployment"]
	var stored *unstructured.Unstructured
	planetest.Eventually(t, long, "Deployments are served", func(ctx context.Context) error {
		stored, err = deployments.Create(ctx, manifest, metav1.CreateOptions{FieldValidation: "Strict"})
		return err
	})
	requireWithin(t, "spec", manifest.Object["spec"], stored.Object["spec"])
	require.EqualValues(t, 1, stored.GetGeneration())

	// Updates of the status do not change the spec.
	require.NoError(t, unstructured.SetNestedField(stored.Object, int64(2), "status", "readyReplicas"))
	require.NoError(t, unstructured.SetNestedField(stored.Object, int64(99), "spec", "replicas"))
	stored, err = deployments.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 3, stored.Object["spec"].(map[string]any)["replicas"])
	require.EqualValues(t, 1, stored.GetGeneration())

	scale, err := deployments.Patch(t.Context(), "frontend", apitypes.MergePatchType, []byte(`{"spec":{"replicas":7}}`), metav1.PatchOptions{}, "scale")
	require.NoError(t, err)
	require.Equal(t, "Scale", scale.GetKind())
	stored, err = deployments.Get(t.Context(), "frontend", metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 7, stored.Object["spec"].(map[string]any)["replicas"])
	require.EqualValues(t, 2, stored.Object["status"].(map[string]any)["readyReplicas"])
}

// store writes a CRD directly into a plane's etcd, as if its API server accepted CRDs in the groups
// of built-in types.
func store(t *testing.T, dir string, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	crd = crd.DeepCopy()
	crd.UID, crd.Generation, crd.CreationTimestamp = uuid.NewUUID(), 1, metav1.Now()
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	crd.Status.StoredVersions = []string{"v1"}
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{}
	value, err := json.Marshal(crd)
	require.NoError(t, err)
	body, err := json.Marshal(map[string]string{
		"key":   base64.StdEncoding.EncodeToString([]byte("/registry/apiextensions.k8s.io/customresourcedefinitions/" + crd.Name)),
		"value": base64.StdEncoding.EncodeToString(value),
	})
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, "etcd:1"))
	}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://etcd/v3/kv/put", bytes.NewReader(body))
	require.NoError(t, err)
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", answer)
}
