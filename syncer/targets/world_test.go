// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/targets"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

const (
	target = "my-cluster"
	a      = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}"
)

var (
	configMaps          = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces          = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	secrets             = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	deployments         = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	clusterRoles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	clusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	syncTargets         = schema.GroupVersionResource{Group: "workload.kcp.io", Version: "v1alpha1", Resource: "synctargets"}
)

// side is one of the two API servers. The methods of side use client, and the program uses api.
type side struct {
	*regiontest.Server
	t      *testing.T
	client dynamic.Interface
	api    region.API
}

func newSide(t *testing.T, name string, opts regiontest.Options) *side {
	t.Helper()
	opts.Name, opts.History = name, 100000
	s := &side{Server: regiontest.NewServer(opts), t: t}
	t.Cleanup(s.Close)
	api, err := region.APIFor(s.Config())
	require.NoError(t, err)
	s.client, s.api = api.Dynamic(), api
	return s
}

// withTargets returns options of an upstream that serves SyncTargets with the definition of package config.
func withTargets(t *testing.T) regiontest.Options {
	t.Helper()
	types, err := syncTargetTypes()
	require.NoError(t, err)
	return regiontest.Options{Definitions: types}
}

var syncTargetTypes = sync.OnceValues(func() (*regiontest.Definitions, error) {
	crd, err := config.CRD("synctargets.workload.kcp.io")
	if err != nil {
		return nil, err
	}
	return regiontest.Compile(crd)
})

func (s *side) of(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	return s.client.Resource(gvr).Namespace("default")
}

// create creates an object from YAML, with the label of the target.
func (s *side) create(gvr schema.GroupVersionResource, manifest string) {
	s.t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(s.t, err)
	obj := &unstructured.Unstructured{}
	require.NoError(s.t, obj.UnmarshalJSON(data))
	obj.SetLabels(map[string]string{v1alpha1.ClusterLabel: target})
	_, err = s.of(gvr).Create(s.t.Context(), obj, metav1.CreateOptions{FieldManager: "user"})
	require.NoError(s.t, err)
}

// get returns an object, or nil if it does not exist.
func (s *side) get(gvr schema.GroupVersionResource, name string) *unstructured.Unstructured {
	s.t.Helper()
	list, err := s.of(gvr).List(s.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	require.NoError(s.t, err)
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// patch merges JSON into an object, as another client would.
func (s *side) patch(gvr schema.GroupVersionResource, name, patch string) {
	s.t.Helper()
	_, err := s.of(gvr).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	require.NoError(s.t, err)
}

func (s *side) delete(gvr schema.GroupVersionResource, name string) {
	s.t.Helper()
	require.NoError(s.t, s.of(gvr).Delete(s.t.Context(), name, metav1.DeleteOptions{}))
}

// writes returns the requests since Reset that may have changed an object, as "verb resource name".
func (s *side) writes() []string {
	var all []string
	for _, r := range s.Requests() {
		if slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) {
			all = append(all, r.Verb+" "+r.Resource+" "+r.Name)
		}
	}
	return all
}

// fleet is an upstream with SyncTargets, and a Controller that runs Syncers for them. It uses real connections and real
// time.
type fleet struct {
	t          *testing.T
	up, down   *side
	controller *targets.Controller
	stop       func()
}

func newFleet(t *testing.T, change ...func(*targets.Options)) *fleet {
	t.Helper()
	f := &fleet{t: t, up: newSide(t, "up", withTargets(t)), down: newSide(t, "down", regiontest.Options{})}
	f.start(t, change...)
	return f
}

func (f *fleet) start(t *testing.T, change ...func(*targets.Options)) {
	t.Helper()
	opts := targets.Options{
		Heartbeat: 100 * time.Millisecond, Recheck: 100 * time.Millisecond, Trust: region.Trust{Insecure: true},
		Configure: func(_ *v1alpha1.SyncTarget, opts *syncer.Options) {
			opts.Discovery = 100 * time.Millisecond
			opts.Types = func(gr schema.GroupResource) bool { return gr == configMaps.GroupResource() }
		},
	}
	for _, c := range change {
		c(&opts)
	}
	controller, err := targets.New(f.up.api, opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- controller.Start(ctx) }()
	f.controller = controller
	f.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(f.stop)
}

// target returns the SyncTarget.
func (f *fleet) target() *v1alpha1.SyncTarget {
	f.t.Helper()
	obj, err := f.up.client.Resource(syncTargets).Get(f.t.Context(), target, metav1.GetOptions{})
	require.NoError(f.t, err)
	st := &v1alpha1.SyncTarget{}
	require.NoError(f.t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, st))
	return st
}

func (f *fleet) patchTarget(patch string) {
	f.t.Helper()
	_, err := f.up.client.Resource(syncTargets).Patch(f.t.Context(), target, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(f.t, err)
}

// kubeconfig returns a kubeconfig of the downstream.
func (f *fleet) kubeconfig() string {
	f.t.Helper()
	data, err := f.down.Listen(f.t.Context())
	require.NoError(f.t, err)
	return string(data)
}

func (f *fleet) register(name string, spec map[string]any) {
	f.t.Helper()
	_, err := f.up.client.Resource(syncTargets).Create(f.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": name}, "spec": spec,
	}}, metav1.CreateOptions{})
	require.NoError(f.t, err)
}

// secret writes a Secret with the kubeconfig.
func (f *fleet) secret(kubeconfig string) {
	f.t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "k"},
		"data": map[string]any{"kubeconfig": base64.StdEncoding.EncodeToString([]byte(kubeconfig))},
	}}
	_, err := f.up.of(secrets).Apply(f.t.Context(), "k", obj, metav1.ApplyOptions{FieldManager: "test", Force: true})
	require.NoError(f.t, err)
}

func (f *fleet) eventually(what string, holds func() bool) {
	f.t.Helper()
	late := time.After(time.Minute)
	for !holds() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-late:
			require.Fail(f.t, "not within a minute: "+what)
		}
	}
}

// says waits until the SyncTarget has a condition, given as "type status reason".
func (f *fleet) says(condition string) {
	f.t.Helper()
	f.eventually(condition, func() bool {
		return slices.ContainsFunc(f.target().Status.Conditions, func(c metav1.Condition) bool {
			return c.Type+" "+string(c.Status)+" "+c.Reason == condition
		})
	})
}

func field(obj *unstructured.Unstructured, path ...string) any {
	if obj == nil {
		return "no object"
	}
	v, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	return v
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}
