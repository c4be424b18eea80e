// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer/crds"
)

var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// world is an upstream and targets in memory.
type world struct {
	t       *testing.T
	servers map[string]*regiontest.Server
	apis    map[string]region.API
	targets []string
	policy  crds.Policy
	c       *crds.Controller
}

func newWorld(t *testing.T, policy crds.Policy, targets ...string) *world {
	t.Helper()
	w := &world{t: t, servers: map[string]*regiontest.Server{}, apis: map[string]region.API{}, targets: targets, policy: policy}
	for _, name := range append([]string{crds.Upstream}, targets...) {
		s := regiontest.NewServer(regiontest.Options{})
		t.Cleanup(s.Close)
		api, err := region.APIFor(s.Config())
		require.NoError(t, err)
		w.servers[name], w.apis[name] = s, api
	}
	w.c = w.controller(nil)
	return w
}

func (w *world) controller(o *crds.Observer) *crds.Controller {
	w.t.Helper()
	c, err := crds.New(crds.Options{Upstream: w.apis[crds.Upstream], Policy: w.policy, Observer: o, Targets: func() []crds.Target {
		var out []crds.Target
		for _, name := range w.targets {
			out = append(out, crds.Target{Name: name, API: w.apis[name]})
		}
		return out
	}})
	require.NoError(w.t, err)
	return c
}

// define defines a type on a side. size is the schema of spec.size.
func (w *world) define(side, plural, size string) {
	w.t.Helper()
	require.NoError(w.t, w.servers[side].AddCRD(definition(w.t, plural, size)))
}

func definition(t *testing.T, plural, size string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	kind := strings.ToUpper(plural[:1]) + plural[1:len(plural)-1]
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: `+plural+`.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: `+plural+`, kind: `+kind+`}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: `+size+`}}, status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`), crd))
	return crd
}

func (w *world) sync() map[string]crds.State {
	w.t.Helper()
	states, err := w.c.Sync(w.t.Context())
	require.NoError(w.t, err)
	require.Equal(w.t, states, w.c.States())
	out := map[string]crds.State{}
	for _, s := range states {
		out[s.Type.Resource+" "+s.Side] = s
	}
	return out
}

// crd returns a definition, or nil.
func (w *world) crd(side, plural string) *apiextensionsv1.CustomResourceDefinition {
	w.t.Helper()
	list, err := w.apis[side].Dynamic().Resource(definitions).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	for _, item := range list.Items {
		if item.GetName() == plural+".example.com" {
			out := &apiextensionsv1.CustomResourceDefinition{}
			require.NoError(w.t, runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, out))
			return out
		}
	}
	return nil
}

func (w *world) maximum(side, plural string) int {
	w.t.Helper()
	size := w.crd(side, plural).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["size"]
	return int(*size.Maximum)
}

func (w *world) drop(side, plural string) {
	w.t.Helper()
	require.NoError(w.t, w.apis[side].Dynamic().Resource(definitions).Delete(w.t.Context(), plural+".example.com", metav1.DeleteOptions{}))
}

// object creates an object and returns it as the server stored it.
func (w *world) object(side, plural string, size int64) (*unstructured.Unstructured, error) {
	kind := strings.ToUpper(plural[:1]) + plural[1:len(plural)-1]
	return w.objects(side, plural).Create(w.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": kind, "metadata": map[string]any{"generateName": "x-", "namespace": "default"},
		"spec": map[string]any{"size": size},
	}}, metav1.CreateOptions{})
}

func (w *world) objects(side, plural string) interface {
	Create(context.Context, *unstructured.Unstructured, metav1.CreateOptions, ...string) (*unstructured.Unstructured, error)
	DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error
} {
	return w.apis[side].Dynamic().Resource(runtimeschema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: plural}).Namespace("default")
}

// writes counts all requests that wrote definitions so far, including those of the test.
func (w *world) writes() int {
	n := 0
	for _, s := range w.servers {
		for _, r := range s.Requests() {
			switch r.Verb {
			case "create", "update", "patch", "delete":
				if r.GroupResource() == definitions.GroupResource() {
					n++
				}
			}
		}
	}
	return n
}

func rule(d crds.Direction, remove bool) crds.Policy {
	return crds.Policy{{Group: "example.com", Resource: "*", Direction: d, Remove: remove}}
}

func TestPull(t *testing.T) {
	w := newWorld(t, rule(crds.Pull, false), "a")
	w.define("a", "things", `{type: integer, maximum: 5}`)
	states := w.sync()
	require.Equal(t, crds.Defined, states["things upstream"].Reason, states["things upstream"].Message)
	require.Equal(t, []string{"a"}, states["things upstream"].From)
	crd := w.crd(crds.Upstream, "things")
	require.Equal(t, "pulled", crd.Labels[crds.ManagedLabel])
	require.Equal(t, "a", crd.Annotations[crds.SourcesAnnotation])
	require.NotNil(t, crd.Spec.Versions[0].Subresources.Status)
	_, err := w.object(crds.Upstream, "things", 5)
	require.NoError(t, err)
	_, err = w.object(crds.Upstream, "things", 6)
	require.Error(t, err)

	before := w.writes()
	require.Equal(t, states, w.sync())
	require.Equal(t, before, w.writes(), "at rest nothing is written")
}

func TestPullNegotiates(t *testing.T) {
	w := newWorld(t, rule(crds.Pull, false), "a", "b")
	w.define("a", "things", `{type: integer, maximum: 5}`)
	w.define("b", "things", `{type: integer, maximum: 3}`)
	state := w.sync()["things upstream"]
	require.Equal(t, crds.Defined, state.Reason, state.Message)
	require.Equal(t, []string{"a", "b"}, state.From)
	require.Len(t, state.Differences, 1)
	require.Equal(t, `spec.size: maximum: narrows: a {"value":5}, b {"value":3}`, state.Differences[0].String())
	require.Equal(t, 3, w.maximum(crds.Upstream, "things"))

	// The upstream definition becomes wider when all targets allow it. While it has no objects, it becomes narrower
	// when a target requires that.
	w.define("b", "things", `{type: integer, maximum: 4}`)
	w.sync()
	require.Equal(t, 4, w.maximum(crds.Upstream, "things"))
	w.define("b", "things", `{type: integer, maximum: 2}`)
	w.sync()
	require.Equal(t, 2, w.maximum(crds.Upstream, "things"))

	// While it has objects, the upstream definition does not become narrower, and the differences are reported.
	_, err := w.object(crds.Upstream, "things", 2)
	require.NoError(t, err)
	w.define("b", "things", `{type: integer, maximum: 1}`)
	state = w.sync()["things upstream"]
	require.Equal(t, crds.Narrowing, state.Reason)
	require.Equal(t, "version v1 would accept less, and there are objects", state.Message)
	require.NotEmpty(t, state.Differences)
	require.Equal(t, 2, w.maximum(crds.Upstream, "things"))
	require.Equal(t, metav1.ConditionFalse, state.Condition().Status)

	// While a target is unreachable, the upstream definition does not become wider.
	w.servers["b"].Partition(true)
	states := w.sync()
	require.Equal(t, crds.Unknown, states[" b"].Reason)
	require.Equal(t, 2, w.maximum(crds.Upstream, "things"))
	require.Equal(t, "a,b", w.crd(crds.Upstream, "things").Annotations[crds.SourcesAnnotation])
}

func TestOneBadTypeDoesNotStopOthers(t *testing.T) {
	w := newWorld(t, rule(crds.Pull, false), "a", "b")
	for _, side := range []string{"a", "b"} {
		w.define(side, "goods", `{type: integer}`)
		w.define(side, "zeds", `{type: integer}`)
	}
	bad := definition(t, "bads", `{type: string}`)
	bad.Spec.Versions[0].Schema.OpenAPIV3Schema.Required = []string{"spec"}
	spec := bad.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	spec.Required = []string{"size"}
	bad.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	require.NoError(t, w.servers["a"].AddCRD(bad))
	w.define("b", "bads", `{type: integer}`)
	w.servers[crds.Upstream].Inject(regiontest.Fault{Verb: "create", Resource: definitions.GroupResource(), Times: 1, Do: regiontest.Refuse(403)})

	states := w.sync()
	require.Equal(t, crds.Incompatible, states["bads upstream"].Reason)
	require.Contains(t, states["bads upstream"].Message, "no object is accepted by all sides")
	require.NotEmpty(t, states["bads upstream"].Differences)
	require.Equal(t, crds.Refused, states["goods upstream"].Reason, "the server refuses one")
	require.Equal(t, crds.Defined, states["zeds upstream"].Reason)
	require.Equal(t, crds.Defined, w.sync()["goods upstream"].Reason, "and is asked again")
}

func TestForeignDefinitionsAreCompared(t *testing.T) {
	w := newWorld(t, rule(crds.Pull, true), "a")
	w.define("a", "things", `{type: integer, maximum: 5}`)
	w.define(crds.Upstream, "things", `{type: integer}`)
	before := w.writes()
	state := w.sync()["things upstream"]
	require.Equal(t, crds.Foreign, state.Reason)
	require.Equal(t, "not all sides accept every object of the definition: for that, version v1 would accept less", state.Message)
	require.Len(t, state.Differences, 1)
	w.define(crds.Upstream, "things", `{type: integer, maximum: 2}`)
	state = w.sync()["things upstream"]
	require.Equal(t, crds.Foreign, state.Reason)
	require.Empty(t, state.Message, "it accepts less than the target")
	require.Equal(t, metav1.ConditionTrue, state.Condition().Status)
	w.drop("a", "things")
	w.sync()
	require.NotNil(t, w.crd(crds.Upstream, "things"))
	require.Equal(t, before+1, w.writes(), "the test's own deletion")
}

func TestPush(t *testing.T) {
	w := newWorld(t, rule(crds.Push, true), "a", "b")
	w.define(crds.Upstream, "things", `{type: integer, maximum: 5}`)
	w.define("b", "things", `{type: string}`)
	states := w.sync()
	require.Equal(t, crds.Defined, states["things a"].Reason, states["things a"].Message)
	require.Equal(t, crds.Foreign, states["things b"].Reason)
	require.Equal(t, "pushed", w.crd("a", "things").Labels[crds.ManagedLabel])
	w.define(crds.Upstream, "things", `{type: integer, maximum: 7}`)
	w.sync()
	require.Equal(t, 7, w.maximum("a", "things"))
	_, err := w.object("a", "things", 7)
	require.NoError(t, err)
	w.define(crds.Upstream, "things", `{type: integer, maximum: 6}`)
	require.Equal(t, crds.Narrowing, w.sync()["things a"].Reason)

	w.drop(crds.Upstream, "things")
	state := w.sync()["things a"]
	require.Equal(t, crds.Orphaned, state.Reason)
	require.Equal(t, "no other side has the type any longer, but there are objects", state.Message)
	require.NoError(t, w.objects("a", "things").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.Equal(t, crds.Removed, w.sync()["things a"].Reason)
	require.Nil(t, w.crd("a", "things"))
	require.NotNil(t, w.crd("b", "things"), "a definition of another manager stays")
}

func TestRemovalOfWhatWasPulled(t *testing.T) {
	w := newWorld(t, rule(crds.Pull, true), "a", "b")
	w.define("a", "things", `{type: integer}`)
	w.sync()
	w.drop("a", "things")

	w.servers["b"].Partition(true)
	require.Equal(t, crds.Unknown, w.sync()["things upstream"].Reason, "b may have it")
	w.servers["b"].Partition(false)
	all := w.targets
	w.targets = nil
	require.Equal(t, crds.Unknown, w.sync()["things upstream"].Reason, "there is no target to ask")
	w.targets = all
	w.policy = rule(crds.Pull, false)
	w.c = w.controller(nil)
	require.Equal(t, crds.Orphaned, w.sync()["things upstream"].Reason, "the rule does not ask for removal")
	w.policy = rule(crds.Pull, true)
	w.c = w.controller(nil)
	_, err := w.object(crds.Upstream, "things", 1)
	require.NoError(t, err)
	require.Equal(t, crds.Orphaned, w.sync()["things upstream"].Reason, "there is an object")
	require.NoError(t, w.objects(crds.Upstream, "things").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.Equal(t, crds.Removed, w.sync()["things upstream"].Reason)
	require.Nil(t, w.crd(crds.Upstream, "things"))
	require.Empty(t, w.sync())
}

// A type that one target defines is pulled, and then pushed to the other target. The pushed definition is not pulled
// again.
func TestBoth(t *testing.T) {
	w := newWorld(t, rule(crds.Both, true), "a", "b")
	w.define("a", "things", `{type: integer, maximum: 5}`)
	w.sync()
	states := w.sync()
	require.Equal(t, crds.Defined, states["things upstream"].Reason)
	require.Equal(t, []string{"a"}, states["things upstream"].From)
	require.Equal(t, crds.Defined, states["things b"].Reason)
	require.NotContains(t, states, "things a")
	before := w.writes()
	w.sync()
	require.Equal(t, before, w.writes())
	w.drop("a", "things")
	require.Equal(t, crds.Removed, w.sync()["things upstream"].Reason)
	require.Equal(t, crds.Removed, w.sync()["things b"].Reason)
	require.Empty(t, w.sync())
}

func TestPolicy(t *testing.T) {
	w := newWorld(t, crds.Policy{{Group: "example.com", Resource: "secrets"}, {Group: "*", Resource: "things", Direction: crds.Pull}}, "a")
	w.define("a", "things", `{type: integer}`)
	w.define("a", "others", `{type: integer}`)
	w.sync()
	require.NotNil(t, w.crd(crds.Upstream, "things"))
	require.Nil(t, w.crd(crds.Upstream, "others"))
}

func TestNewRefuses(t *testing.T) {
	api := newWorld(t, nil).apis[crds.Upstream]
	none := func() []crds.Target { return nil }
	for want, opts := range map[string]crds.Options{
		"options: Upstream is nil: give the API server whose types the targets share": {Targets: none},
		"options: Targets is nil: give a func that returns the targets":               {Upstream: api},
		"options: Interval is -1ns: want zero or more":                                {Upstream: api, Targets: none, Interval: -1},
		"options: Timeout is -1ns: want zero or more":                                 {Upstream: api, Targets: none, Timeout: -1},
		`options: Policy[0].Direction is "Up": want None, Pull, Push or Both`:         {Upstream: api, Targets: none, Policy: crds.Policy{{Resource: "*", Direction: "Up"}}},
		`options: Policy[0].Resource is empty: want a plural name or "*"`:             {Upstream: api, Targets: none, Policy: crds.Policy{{Direction: crds.Pull}}},
	} {
		_, err := crds.New(opts)
		require.EqualError(t, err, want)
	}
	for want, targets := range map[string][]crds.Target{
		`targets[0].Name is "upstream": want a name that no other side has`: {{Name: "upstream", API: api}},
		`targets[1].Name is "a": want a name that no other side has`:        {{Name: "a", API: api}, {Name: "a", API: api}},
		`targets[0].API of a is nil`:                                        {{Name: "a"}},
	} {
		c, err := crds.New(crds.Options{Upstream: api, Targets: func() []crds.Target { return targets }})
		require.NoError(t, err)
		_, err = c.Sync(t.Context())
		require.EqualError(t, err, want)
	}
}

// Start makes passes until its context ends, and reports each change once.
func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rule(crds.Pull, false), "a")
		w.define("a", "things", `{type: integer}`)
		told := make(chan crds.State, 100)
		w.c = w.controller(&crds.Observer{Changed: func(_ context.Context, s crds.State) { told <- s }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.c.Start(ctx) }()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		require.Len(t, told, 1)
		require.Equal(t, crds.Defined, (<-told).Reason)
		w.define("a", "others", `{type: integer}`)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, "others", (<-told).Type.Resource, "types that come are noticed")
		require.NotNil(t, w.crd(crds.Upstream, "others"))
		before := w.writes()
		cancel()
		require.NoError(t, <-done)
		require.Equal(t, before, w.writes(), "stopping removes nothing")
		require.NotNil(t, w.crd(crds.Upstream, "things"))
	})
}
