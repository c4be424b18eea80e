// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// reason returns why a type is not synced. It fails the test if Status lacks the type.
func (p *pair) reason(gvr schema.GroupVersionResource) syncer.Reason {
	p.t.Helper()
	types := p.Status().Types
	at := slices.IndexFunc(types, func(s syncer.TypeStatus) bool { return s.Resource == gvr })
	require.GreaterOrEqual(p.t, at, 0, "Status lacks %s", gvr)
	return types[at].Reason
}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Types appear and disappear on either side. The syncer neither syncs nor deletes objects of a type that one side does
// not serve.
func TestTypesComeAndGo(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		only := func(crds ...*apiextensionsv1.CustomResourceDefinition) regiontest.Options {
			return regiontest.Options{CRDs: append([]*apiextensionsv1.CustomResourceDefinition{}, crds...)}
		}
		p := &pair{t: t, up: newSide(t, "up", only(crd("widgets", "Widget", true))), down: newSide(t, "down", only(crd("gadgets", "Gadget", false)))}
		p.start(syncer.Options{})
		require.Equal(t, syncer.ReasonNotServedDownstream, p.reason(widgets))
		require.Equal(t, syncer.ReasonNotServedUpstream, p.reason(gadgets))
		require.Equal(t, syncer.ReasonNotPermitted, p.reason(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}))
		require.Empty(t, p.reason(configMaps))
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}")
		p.up.create(configMaps, a)
		p.rest()
		require.NotNil(t, p.down.get(configMaps, "a"), "one type does not stop the others")

		require.NoError(t, p.down.AddCRD(crd("widgets", "Widget", true)))
		time.Sleep(time.Minute)
		require.Empty(t, p.reason(widgets))
		require.EqualValues(t, 1, field(p.down.get(widgets, "a"), "spec", "size"))

		// The definition is deleted downstream, and with it the downstream objects. Then it is created again.
		require.NoError(t, p.down.client.Resource(crds).Delete(t.Context(), "widgets.example.org", metav1.DeleteOptions{}))
		time.Sleep(2 * time.Minute)
		require.Equal(t, syncer.ReasonNotServedDownstream, p.reason(widgets))
		require.NotNil(t, p.up.get(widgets, "a"))
		require.NoError(t, p.down.AddCRD(crd("widgets", "Widget", true)))
		time.Sleep(2 * time.Minute)
		require.EqualValues(t, 1, field(p.down.get(widgets, "a"), "spec", "size"))

		// The upstream no longer serves the type: the downstream objects stay. Then it serves the type again.
		serve := func(served bool) {
			crd := crd("widgets", "Widget", true)
			crd.Spec.Versions[0].Served = served
			require.NoError(t, p.up.AddCRD(crd))
			time.Sleep(2 * time.Minute)
		}
		serve(false)
		require.Equal(t, syncer.ReasonNotServedUpstream, p.reason(widgets))
		require.NotNil(t, p.down.get(widgets, "a"))
		serve(true)
		require.Empty(t, p.reason(widgets))

		// If a client deletes the definition upstream, the server deletes the objects, and the syncer their downstream
		// objects.
		require.NoError(t, p.up.client.Resource(crds).Delete(t.Context(), "widgets.example.org", metav1.DeleteOptions{}))
		time.Sleep(2 * time.Minute)
		require.Equal(t, syncer.ReasonNotServedUpstream, p.reason(widgets))
		require.Nil(t, p.down.get(widgets, "a"))
	})
}

// If a type cannot be listed or watched, other types are still synced.
func TestBadTypeDoesNotStopTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", regiontest.Options{}), down: newSide(t, "down", regiontest.Options{})}
		p.up.Inject(regiontest.Fault{Verb: "list", Resource: services.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusInternalServerError)})
		p.down.Inject(regiontest.Fault{Verb: "watch", Resource: jobs.GroupResource(), Times: -1, Do: regiontest.Hang()})
		p.up.create(configMaps, a)
		p.start(syncer.Options{})
		require.NotNil(t, p.down.get(configMaps, "a"))
		at := slices.IndexFunc(p.Status().Types, func(s syncer.TypeStatus) bool { return s.Resource == services })
		require.ErrorContains(t, p.Status().Types[at].Err, "failed to list services")
	})
}

// Types stay synced while discovery fails.
func TestDiscoveryFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}")
		p.rest()
		p.down.Inject(regiontest.Fault{Verb: "get", Times: -1, Do: regiontest.Refuse(http.StatusServiceUnavailable)})
		time.Sleep(5 * time.Minute)
		require.Empty(t, p.reason(widgets))
		p.up.patch(widgets, "a", `{"spec":{"size":2}}`)
		p.rest()
		require.EqualValues(t, 2, field(p.down.get(widgets, "a"), "spec", "size"))
	})
}

// At rest, and at a restart, the syncer writes nothing, also if there are many objects.
func TestNoWritesAtRest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.numbered(100)
		for i := range 30 {
			name := fmt.Sprintf("web-%d", i)
			obj := parse(t, deployment)
			obj.SetName(name)
			_, err := p.up.of(deployments).Create(t.Context(), obj, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		p.rest()
		for i := range 30 {
			p.down.patch(deployments, fmt.Sprintf("web-%d", i), `{"status":{"observedGeneration":1,"replicas":2,"conditions":[{"type":"Available","status":"True"}]}}`, "status")
		}
		p.rest()
		for range 3 {
			p.reset()
			time.Sleep(10 * time.Minute)
			p.stop()
			p.start(syncer.Options{})
			require.Empty(t, p.up.writes())
			require.Empty(t, p.down.writes())
		}
		require.EqualValues(t, 2, field(p.up.get(deployments, "web-7"), "status", "replicas"))
	})
}

// The syncer makes one write each for the finalizer, the downstream object and the status of an object. It makes one
// write for a change of the object, and two for its deletion.
func TestRequestsPerObject(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		count := func() (up, down int) {
			for _, r := range slices.Concat(p.up.Requests(), p.down.Requests()) {
				require.NotEqual(t, "list", r.Verb)
			}
			up, down = len(p.up.writes()), len(p.down.writes())
			p.reset()
			return up, down
		}
		p.reset()
		p.up.create(deployments, deployment)
		p.settle()
		up, down := count()
		require.Equal(t, []int{2, 1}, []int{up, down}, "the user and the finalizer; the downstream object")
		p.up.patch(deployments, "web", `{"spec":{"paused":true}}`)
		p.settle()
		up, down = count()
		require.Equal(t, []int{1, 1}, []int{up, down}, "the user; the downstream object")
		p.down.patch(deployments, "web", `{"status":{"observedGeneration":2,"replicas":2}}`, "status")
		p.settle()
		up, down = count()
		require.Equal(t, []int{1, 1}, []int{up, down}, "the status; the controller")
		p.up.delete(deployments, "web")
		p.settle()
		up, down = count()
		require.Equal(t, []int{2, 1}, []int{up, down}, "the user and the finalizer; the downstream object")
	})
}

// unanswered is an API whose discovery fails for some group versions.
type unanswered struct {
	region.API
	which func(schema.GroupVersion) bool
}

func (u unanswered) Discovery() region.Discovery {
	return unansweredDiscovery{u.API.Discovery(), u.which}
}

type unansweredDiscovery struct {
	region.Discovery
	which func(schema.GroupVersion) bool
}

func (d unansweredDiscovery) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	groups, lists, err := d.Discovery.ServerGroupsAndResources()
	failed := map[schema.GroupVersion]error{}
	lists = slices.DeleteFunc(lists, func(l *metav1.APIResourceList) bool {
		gv, _ := schema.ParseGroupVersion(l.GroupVersion)
		if !d.which(gv) {
			return false
		}
		failed[gv] = errors.New("unanswered")
		return true
	})
	if len(failed) == 0 {
		return groups, lists, err
	}
	return groups, lists, errors.Join(err, &discovery.ErrGroupDiscoveryFailed{Groups: failed})
}

// While discovery of the synced version of a type fails, that version stays synced, although another version is served.
// Its objects are not listed again then or afterwards, and Status has no Reason for the type.
func TestDiscoveryOfOneVersionFails(t *testing.T) {
	two := crd("widgets", "Widget", true)
	newer := *two.Spec.Versions[0].DeepCopy()
	newer.Name, newer.Storage = "v2", false
	two.Spec.Versions = append(two.Spec.Versions, newer)
	served := regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{two}}
	v2 := schema.GroupVersionResource{Group: "example.org", Version: "v2", Resource: "widgets"}
	for name, test := range map[string]struct{ up, down, all bool }{
		"upstream": {up: true}, "downstream": {down: true}, "both": {up: true, down: true}, "all versions": {down: true, all: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := &pair{t: t, up: newSide(t, "up", served), down: newSide(t, "down", served)}
				var fails atomic.Bool
				silent := func(gv schema.GroupVersion) bool {
					return fails.Load() && gv.Group == v2.Group && (test.all || gv.Version == v2.Version)
				}
				if test.up {
					p.up.api = unanswered{p.up.api, silent}
				}
				if test.down {
					p.down.api = unanswered{p.down.api, silent}
				}
				p.start(syncer.Options{Types: only(v2.GroupResource())})
				p.up.create(v2, "{apiVersion: example.org/v2, kind: Widget, metadata: {name: a}, spec: {size: 0}}")
				p.rest()
				for i, failing := range []bool{false, true, false} {
					fails.Store(failing)
					p.reset()
					time.Sleep(100 * time.Second)
					var all []syncer.TypeStatus
					for _, s := range p.Status().Types {
						if s.Resource.GroupResource() == v2.GroupResource() {
							all = append(all, s)
						}
					}
					require.Len(t, all, 1)
					require.Equal(t, v2, all[0].Resource)
					require.Empty(t, all[0].Reason)
					p.up.patch(v2, "a", fmt.Sprintf(`{"spec":{"size":%d}}`, i))
					p.settle()
					for _, r := range slices.Concat(p.up.Requests(), p.down.Requests()) {
						require.False(t, r.Resource == v2.Resource && (r.Verb == "list" || r.Version != v2.Version), "%+v", r)
					}
					require.EqualValues(t, i, field(p.down.get(v2, "a"), "spec", "size"))
				}
			})
		})
	}
}

// Detach returns an error if discovery of a group fails: objects of the group's types may still have the finalizer.
func TestDetachKnowsAllTypes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}}")
		p.up.create(configMaps, a)
		p.rest()
		p.stop()
		half, err := syncer.New(unanswered{p.up.api, func(gv schema.GroupVersion) bool { return gv.Group == "example.org" }}, p.down.api, syncer.Options{Target: target})
		require.NoError(t, err)
		require.ErrorContains(t, half.Detach(t.Context()), "example.org")
		require.Empty(t, p.up.get(configMaps, "a").GetFinalizers())
		require.NotEmpty(t, p.up.get(widgets, "a").GetFinalizers())
		require.NoError(t, p.Detach(t.Context()))
		require.Empty(t, p.up.get(widgets, "a").GetFinalizers())
	})
}
