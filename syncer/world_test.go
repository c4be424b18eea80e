// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/latetest"
	"github.com/atoll-dev/atoll/internal/maintest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

func TestMain(m *testing.M) { maintest.Main(m) }

const target = "my-cluster"

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	jobs        = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	volumes     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	widgets     = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}
	gadgets     = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "gadgets"}
)

// crd returns the definition of a type whose spec and status take any fields. withStatus makes status a subresource.
func crd(plural, kind string, withStatus bool) *apiextensionsv1.CustomResourceDefinition {
	free := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: "v1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": free, "status": free},
		}},
	}
	if withStatus {
		version.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.org"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.org", Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version},
		},
	}
}

// side is one of the two API servers.
type side struct {
	*regiontest.Server
	t      *testing.T
	client dynamic.Interface
	api    region.API
}

// custom returns the custom types of the sides whose options have none.
var custom = sync.OnceValues(func() (*regiontest.Definitions, error) {
	return regiontest.Compile(crd("widgets", "Widget", true), crd("gadgets", "Gadget", false))
})

func newSide(t *testing.T, name string, opts regiontest.Options) *side {
	t.Helper()
	opts.Name, opts.History = name, 100000
	if opts.CRDs == nil && opts.Definitions == nil {
		types, err := custom()
		require.NoError(t, err)
		opts.Definitions = types
	}
	s := &side{Server: regiontest.NewServer(opts), t: t}
	t.Cleanup(s.Close)
	api, err := region.APIFor(s.Config())
	require.NoError(t, err)
	s.client, s.api = api.Dynamic(), api
	return s
}

// late delays the watch events of s by 300 milliseconds for the next syncer that is started.
func (s *side) late() {
	s.t.Helper()
	s.t.Cleanup(func() { time.Sleep(time.Second) }) // until a stopped watch has read its last event
	config := s.Config()
	config.Wrap(latetest.Watches(300 * time.Millisecond))
	var err error
	s.api, err = region.APIFor(config)
	require.NoError(s.t, err)
}

func (s *side) of(gvr schema.GroupVersionResource, namespace ...string) dynamic.ResourceInterface {
	if len(namespace) == 0 {
		namespace = []string{"default"}
	}
	if gvr == volumes || gvr == namespaces {
		return s.client.Resource(gvr)
	}
	return s.client.Resource(gvr).Namespace(namespace[0])
}

// create creates an object from YAML, with its status. It adds the label of the target unless the object has labels.
func (s *side) create(gvr schema.GroupVersionResource, manifests string) *unstructured.Unstructured {
	s.t.Helper()
	obj := parse(s.t, manifests)
	made, err := s.of(gvr, namespaceOf(obj)).Create(s.t.Context(), obj, metav1.CreateOptions{FieldManager: "user"})
	require.NoError(s.t, err)
	if status, ok := obj.Object["status"]; ok {
		made.Object["status"] = status
		made, err = s.of(gvr, namespaceOf(obj)).UpdateStatus(s.t.Context(), made, metav1.UpdateOptions{FieldManager: "controller"})
		require.NoError(s.t, err)
	}
	return made
}

func namespaceOf(obj *unstructured.Unstructured) string {
	if ns := obj.GetNamespace(); ns != "" {
		return ns
	}
	return "default"
}

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	obj := &unstructured.Unstructured{}
	require.NoError(t, obj.UnmarshalJSON(data))
	if obj.GetLabels() == nil {
		obj.SetLabels(map[string]string{"workloads.kcp.io/cluster": target})
	}
	return obj
}

// get returns an object, or nil if it does not exist.
func (s *side) get(gvr schema.GroupVersionResource, name string, namespace ...string) *unstructured.Unstructured {
	s.t.Helper()
	list, err := s.of(gvr, namespace...).List(context.Background(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	require.NoError(s.t, err)
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// patch merges JSON into an object, as another client would.
func (s *side) patch(gvr schema.GroupVersionResource, name, patch string, subresources ...string) *unstructured.Unstructured {
	s.t.Helper()
	obj, err := s.of(gvr).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"}, subresources...)
	require.NoError(s.t, err)
	return obj
}

func (s *side) delete(gvr schema.GroupVersionResource, name string) {
	s.t.Helper()
	require.NoError(s.t, s.of(gvr).Delete(s.t.Context(), name, metav1.DeleteOptions{}))
}

// writes returns the requests since reset that may have changed an object, as "verb resource/sub name".
func (s *side) writes() []string {
	var all []string
	for _, r := range s.Requests() {
		switch r.Verb {
		case "create", "update", "patch", "delete", "deletecollection":
			all = append(all, strings.TrimSuffix(fmt.Sprintf("%s %s/%s", r.Verb, r.Resource, r.Subresource), "/")+" "+r.Name)
		}
	}
	return all
}

// writesBy counts the requests by a field manager.
func (s *side) writesBy(manager string) (n int) {
	for _, r := range s.Requests() {
		if r.FieldManager == manager {
			n++
		}
	}
	return n
}

// pair is an upstream, a downstream, and a syncer between them.
type pair struct {
	t        *testing.T
	up, down *side
	*syncer.Syncer
	stop func()

	mu        sync.Mutex
	overruled []string
	told      []string // changes of problems, as "name reason"
}

// newPair starts a syncer and waits until it rests.
func newPair(t *testing.T, opts syncer.Options) *pair {
	t.Helper()
	p := &pair{t: t, up: newSide(t, "up", regiontest.Options{}), down: newSide(t, "down", regiontest.Options{})}
	p.start(opts)
	return p
}

// start starts a syncer and waits until it rests. stop stops it before the end of the test.
func (p *pair) start(opts syncer.Options) {
	p.t.Helper()
	if opts.Target == "" {
		opts.Target = target
	}
	opts.Observer = &syncer.Observer{Overruled: func(_ context.Context, e syncer.OverruledEvent) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.overruled = append(p.overruled, e.Fields...)
	}, Problem: func(_ context.Context, e syncer.ProblemEvent) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told = append(p.told, strings.TrimSpace(e.Object.Name+" "+string(e.Reason)))
	}}
	s, err := syncer.New(p.up.api, p.down.api, opts)
	require.NoError(p.t, err)
	p.Syncer = s
	p.stop = run(p.t, s)
	p.rest()
}

// heard returns the ProblemEvents so far, as "name reason".
func (p *pair) heard() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.told)
}

// run runs s until the end of the test, or until the func that it returns is called. That func waits until s has
// ended.
func run(t *testing.T, s *syncer.Syncer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

// rest waits 15 seconds of the bubble's time, which is enough for all work without a longer delay.
func (p *pair) rest() {
	for range 15 {
		time.Sleep(time.Second)
		synctest.Wait()
	}
}

// settle waits 2 seconds of the bubble's time, which is enough for work without a delay.
func (p *pair) settle() {
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

// reset forgets the recorded requests and the faults of both sides.
func (p *pair) reset() {
	p.up.Reset()
	p.down.Reset()
}

// problems returns the problems of all types, as "type key reason".
func (p *pair) problems() []string {
	found := []string{}
	for _, t := range p.Status().Types {
		for _, problem := range t.Problems {
			found = append(found, fmt.Sprintf("%s %s %s", t.Resource.Resource, problem.Object, problem.Reason))
		}
	}
	return found
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

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}
