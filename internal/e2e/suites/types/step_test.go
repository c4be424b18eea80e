// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package types_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/crds"
)

// long is the timeout of each condition: a sync waits up to half a minute for each side.
const long = 3 * time.Minute

// policy sets the direction in which each type is copied, and whether it may be removed.
var policy = crds.Policy{
	{Group: "node.k8s.io", Resource: "*", Direction: crds.Pull, Remove: true},
	{Group: "apps", Resource: "deployments", Direction: crds.Pull},
	{Group: "down.example.org", Resource: "*", Direction: crds.Pull, Remove: true},
	{Group: "up.example.org", Resource: "*", Direction: crds.Push, Remove: true},
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {plural: %[3]s, kind: %[4]s}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, maximum: %[5]d}
              color: {type: string, default: red, enum: [red, green]}
            x-kubernetes-validations: [{rule: "self.size != 3", message: "three is too many"}]
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

func define(t *testing.T, p *plane.Plane, group, plural, kind string, maximum int) {
	t.Helper()
	planetest.Apply(t, p, fmt.Sprintf(definition, plural+"."+group, group, plural, kind, maximum))
}

// With two clusters and an upstream that lacks built-in types, types are copied up and down, and
// types that cannot be copied are reported.
func TestTypesInStep(t *testing.T) {
	planes := planetest.NewAll(t,
		plane.Options{Name: "upstream", APIServerFlags: []string{"--runtime-config=apps/v1=false,node.k8s.io/v1=false", "--disable-admission-plugins=RuntimeClass"}},
		plane.Options{Name: "cluster-1"}, plane.Options{Name: "cluster-2"})
	up, one, two := planes[0], planes[1], planes[2]
	define(t, one, "down.example.org", "things", "Thing", 10)
	define(t, two, "down.example.org", "things", "Thing", 5)
	define(t, up, "up.example.org", "gadgets", "Gadget", 7)

	apis := map[string]region.API{}
	for _, p := range planes {
		apis[p.Name()] = apiOf(t, p)
	}
	c := controller(t, apis)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()

	await(t, c, "things", crds.Upstream, crds.Defined)
	await(t, c, "runtimeclasses", crds.Upstream, crds.Defined)
	await(t, c, "gadgets", "cluster-1", crds.Defined)
	await(t, c, "gadgets", "cluster-2", crds.Defined)
	refused := await(t, c, "deployments", crds.Upstream, crds.Refused)
	require.Contains(t, refused.Message, "should be a domain with at least one dot")
	var things crds.State
	planetest.Eventually(t, long, "things are those of both clusters", func(context.Context) error {
		things, _ = stateOf(c.States(), "things", crds.Upstream)
		if things.Reason != crds.Defined || !slices.Equal(things.From, []string{"cluster-1", "cluster-2"}) {
			return fmt.Errorf("they are %q, from %v: %s", things.Reason, things.From, things.Message)
		}
		return nil
	})
	require.Len(t, things.Differences, 1)

	// The upstream accepts an object that both clusters accept, and rejects an object that one of
	// the clusters rejects.
	at := runtimeschema.GroupVersionResource{Group: "down.example.org", Version: "v1", Resource: "things"}
	thing := func(name string, size int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "down.example.org/v1", "kind": "Thing", "metadata": map[string]any{"name": name, "namespace": "default"}, "spec": map[string]any{"size": size},
		}}
	}
	upThings := apis["upstream"].Dynamic().Resource(at).Namespace("default")
	var stored *unstructured.Unstructured
	planetest.Eventually(t, long, "things are served", func(ctx context.Context) (err error) {
		stored, err = upThings.Create(ctx, thing("five", 5), metav1.CreateOptions{})
		return err
	})
	require.Equal(t, map[string]any{"size": int64(5), "color": "red"}, stored.Object["spec"])
	for name, size := range map[string]int64{"six": 6, "three": 3} {
		// The definition served at first may be that of one cluster only.
		planetest.Eventually(t, long, name+" would be refused", func(ctx context.Context) error {
			_, err := upThings.Create(ctx, thing(name, size), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if !apierrors.IsInvalid(err) {
				return fmt.Errorf("it is not: %w", err)
			}
			return nil
		})
		_, err := upThings.Create(t.Context(), thing(name, size), metav1.CreateOptions{})
		require.True(t, apierrors.IsInvalid(err), "%s: %v", name, err)
	}
	for _, name := range []string{"cluster-1", "cluster-2"} {
		copied := thing("five", 5)
		copied.Object["spec"] = stored.Object["spec"]
		_, err := apis[name].Dynamic().Resource(at).Namespace("default").Create(t.Context(), copied, metav1.CreateOptions{FieldValidation: "Strict"})
		require.NoError(t, err)
	}
	class := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": map[string]any{"name": "gvisor"}, "handler": "runsc",
		"overhead": map[string]any{"podFixed": map[string]any{"cpu": "250m", "memory": "120Mi"}},
	}}
	classes := runtimeschema.GroupVersionResource{Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses"}
	planetest.Eventually(t, long, "the built-in type is served where it was not", func(ctx context.Context) error {
		_, err := apis["upstream"].Dynamic().Resource(classes).Create(ctx, class, metav1.CreateOptions{FieldValidation: "Strict"})
		return err
	})

	// At rest nothing is written, also not by a new controller.
	cancel()
	require.NoError(t, <-done)
	planetest.Eventually(t, long, "API servers have said all of the definitions", func(ctx context.Context) error { return incomplete(ctx, apis) })
	before := versions(t, apis)
	fresh := controller(t, apis)
	for range 3 {
		_, err := fresh.Sync(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, before, versions(t, apis))

	// An unreachable cluster removes no type. A change in a cluster is adopted as far as the
	// existing objects allow.
	require.NoError(t, two.Kill(t.Context()))
	state := syncOne(t, fresh, "things", crds.Upstream)
	require.Equal(t, crds.Defined, state.Reason, state.Message)
	require.NoError(t, two.Restart(t.Context()))
	define(t, two, "down.example.org", "things", "Thing", 4)
	becomes(t, fresh, "things", crds.Upstream, crds.Narrowing)
	define(t, two, "down.example.org", "things", "Thing", 8)
	becomes(t, fresh, "things", crds.Upstream, crds.Defined)
	planetest.Eventually(t, long, "eight is taken", func(ctx context.Context) error {
		_, err := upThings.Create(ctx, thing("eight", 8), metav1.CreateOptions{})
		return err
	})

	// A definition is deleted once its origin is deleted and no objects of the type exist, not
	// before.
	for _, name := range []string{"cluster-1", "cluster-2"} {
		remove(t, apis[name], "things.down.example.org")
	}
	becomes(t, fresh, "things", crds.Upstream, crds.Orphaned)
	require.NoError(t, upThings.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	becomes(t, fresh, "things", crds.Upstream, crds.Removed)
	remove(t, apis["upstream"], "gadgets.up.example.org")
	becomes(t, fresh, "gadgets", "cluster-1", crds.Removed)
}

func controller(t *testing.T, apis map[string]region.API) *crds.Controller {
	t.Helper()
	c, err := crds.New(crds.Options{
		Upstream: apis["upstream"], Policy: policy, Interval: time.Second,
		Targets: func() []crds.Target {
			return []crds.Target{{Name: "cluster-1", API: apis["cluster-1"]}, {Name: "cluster-2", API: apis["cluster-2"]}}
		},
	})
	require.NoError(t, err)
	return c
}

func stateOf(states []crds.State, resource, side string) (crds.State, bool) {
	for _, s := range states {
		if s.Type.Resource == resource && s.Side == side {
			return s, true
		}
	}
	return crds.State{}, false
}

func await(t *testing.T, c *crds.Controller, resource, side string, want crds.Reason) crds.State {
	t.Helper()
	var found crds.State
	planetest.Eventually(t, long, fmt.Sprintf("%s on %s is %s", resource, side, want), func(context.Context) error {
		found, _ = stateOf(c.States(), resource, side)
		if found.Reason != want {
			return fmt.Errorf("it is %q: %s", found.Reason, found.Message)
		}
		return nil
	})
	return found
}

// becomes syncs until a type has the wanted state: discovery lists a type a moment longer than it
// is defined, and a starting server may time out.
func becomes(t *testing.T, c *crds.Controller, resource, side string, want crds.Reason) {
	t.Helper()
	planetest.Eventually(t, long, fmt.Sprintf("%s on %s becomes %s", resource, side, want), func(context.Context) error {
		states, err := c.Sync(t.Context())
		if err != nil {
			return err
		}
		// A side that did not respond has no state of the type.
		if state, _ := stateOf(states, resource, side); state.Reason != want {
			return fmt.Errorf("it is %q: %s; all: %v", state.Reason, state.Message, states)
		}
		return nil
	})
}

// incomplete returns an error that names a definition whose status is incomplete. The status must
// show whether the definition is served and, in a group of Kubernetes itself, whether it is
// approved.
func incomplete(ctx context.Context, apis map[string]region.API) error {
	for name, api := range apis {
		list, err := api.Dynamic().Resource(crdResource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, item := range list.Items {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, crd); err != nil {
				return err
			}
			conditions := map[apiextensionsv1.CustomResourceDefinitionConditionType]apiextensionsv1.ConditionStatus{}
			for _, c := range crd.Status.Conditions {
				conditions[c.Type] = c.Status
			}
			_, judged := conditions[apiextensionsv1.KubernetesAPIApprovalPolicyConformant]
			if conditions[apiextensionsv1.Established] != apiextensionsv1.ConditionTrue || !judged && strings.HasSuffix(crd.Spec.Group, ".k8s.io") {
				return fmt.Errorf("%s in %s: %v", crd.Name, name, crd.Status.Conditions)
			}
		}
	}
	return nil
}

func syncOne(t *testing.T, c *crds.Controller, resource, side string) crds.State {
	t.Helper()
	states, err := c.Sync(t.Context())
	require.NoError(t, err)
	found, ok := stateOf(states, resource, side)
	require.True(t, ok, "%s on %s: %v", resource, side, states)
	return found
}

// versions returns the resourceVersions of all definitions.
func versions(t *testing.T, apis map[string]region.API) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, api := range apis {
		list, err := api.Dynamic().Resource(crdResource).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, item := range list.Items {
			out[name+"/"+item.GetName()] = item.GetResourceVersion()
		}
	}
	return out
}

// remove deletes a definition and waits until the definition is gone.
func remove(t *testing.T, api region.API, name string) {
	t.Helper()
	client := api.Dynamic().Resource(crdResource)
	require.NoError(t, client.Delete(t.Context(), name, metav1.DeleteOptions{}))
	planetest.Eventually(t, long, name+" is gone", func(ctx context.Context) error {
		if _, err := client.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}
