// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

var autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

const autoscaler = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web},
	spec: {minReplicas: 1, maxReplicas: 10, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`

func (p *pair) replicas(name string) any {
	return field(p.down.get(deployments, name), "spec", "replicas")
}

// A HorizontalPodAutoscaler is synced with the Deployment that it targets, without a Rule. The replicas that it sets
// downstream stay: across changes upstream, restarts, and while the autoscalers cannot be listed. Other Deployments
// have the replicas of the upstream.
func TestAutoscaledReplicas(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(deployments, deployment)
		p.up.create(deployments, strings.Replace(deployment, "name: web", "name: other", 1))
		p.up.create(autoscalers, autoscaler)
		p.rest()
		require.EqualValues(t, 2, p.replicas("web"))
		p.down.patch(deployments, "web", `{"spec":{"replicas":7}}`)
		p.down.patch(deployments, "other", `{"spec":{"replicas":7}}`)
		p.rest()
		require.EqualValues(t, 7, p.replicas("web"))
		require.EqualValues(t, 2, p.replicas("other"))

		p.up.patch(deployments, "web", `{"spec":{"replicas":4,"paused":true}}`)
		p.rest()
		require.EqualValues(t, 7, p.replicas("web"))
		require.Equal(t, true, field(p.down.get(deployments, "web"), "spec", "paused"))

		p.stop()
		p.reset()
		for _, verb := range []string{"list", "watch"} {
			for _, side := range []*side{p.up, p.down} {
				side.Inject(regiontest.Fault{Verb: verb, Resource: autoscalers.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusServiceUnavailable)})
			}
		}
		p.start(syncer.Options{})
		require.Empty(t, p.down.writes(), "autoscalers are not known")
		p.reset()
		time.Sleep(time.Minute)
		p.rest()
		require.Empty(t, p.down.writes(), "autoscalers are known")
		require.EqualValues(t, 7, p.replicas("web"))

		p.up.patch(autoscalers, "web", `{"spec":{"scaleTargetRef":{"name":"other"}}}`)
		p.rest()
		require.EqualValues(t, 4, p.replicas("web"))
		p.down.patch(deployments, "other", `{"spec":{"replicas":7}}`)
		p.rest()
		require.EqualValues(t, 7, p.replicas("other"))

		p.up.delete(autoscalers, "web")
		p.rest()
		require.EqualValues(t, 2, p.replicas("other"))
		require.Empty(t, p.problems())
	})
}

// A Rule for the replicas replaces the built-in one.
func TestAutoscaledReplicasByRule(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Rules: []syncer.Rule{
			{Type: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Path: "spec.replicas", Owner: syncer.Upstream},
		}})
		p.scale()
		require.EqualValues(t, 2, p.replicas("web"))
	})
}

// scale creates a Deployment with two replicas and its autoscaler, and sets seven replicas downstream.
func (p *pair) scale() {
	p.up.create(deployments, deployment)
	p.up.create(autoscalers, autoscaler)
	p.rest()
	p.down.patch(deployments, "web", `{"spec":{"replicas":7}}`)
	p.rest()
}

// scaled does the same as scale, and requires that the seven replicas stay.
func (p *pair) scaled() {
	p.scale()
	require.EqualValues(p.t, 7, p.replicas("web"))
}

// An upstream that was restored from a backup may lack an autoscaler. As long as the autoscaler works downstream, it
// sets the replicas.
func TestAutoscalerThatTheUpstreamLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.scaled()
		p.stop()
		p.up.patch(autoscalers, "web", `{"metadata":{"finalizers":null}}`)
		p.up.delete(autoscalers, "web")
		p.start(syncer.Options{})
		p.up.patch(deployments, "web", `{"spec":{"replicas":4}}`)
		p.rest()
		require.EqualValues(t, 7, p.replicas("web"))
		p.down.delete(autoscalers, "web")
		p.rest()
		require.EqualValues(t, 4, p.replicas("web"))
	})
}

// While discovery of the autoscalers fails at a restart, replicas that another client has set stay. If it turns out that
// a side does not serve the type, the upstream's replicas count.
func TestAutoscalersThatAreNotDiscovered(t *testing.T) {
	for name, served := range map[string]bool{"served": true, "not served": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{})
				p.scaled()
				p.stop()
				var answers atomic.Bool
				group := func(gv schema.GroupVersion) bool { return gv.Group == "autoscaling" }
				if p.down.api = (unanswered{p.down.api, func(gv schema.GroupVersion) bool { return group(gv) && !answers.Load() }}); !served {
					p.down.api = without{p.down.api, func(gv schema.GroupVersion) bool { return group(gv) && answers.Load() }}
				}
				p.start(syncer.Options{})
				p.up.patch(deployments, "web", `{"spec":{"replicas":4}}`)
				p.rest()
				require.EqualValues(t, 7, p.replicas("web"), "not known yet")
				answers.Store(true)
				time.Sleep(2 * time.Minute)
				p.rest()
				if served {
					require.EqualValues(t, 7, p.replicas("web"))
				} else {
					require.EqualValues(t, 4, p.replicas("web"))
				}
			})
		})
	}
}

// without is an API that does not serve some group versions.
type without struct {
	region.API
	which func(schema.GroupVersion) bool
}

func (w without) Discovery() region.Discovery { return withoutDiscovery{w.API.Discovery(), w.which} }

type withoutDiscovery struct {
	region.Discovery
	which func(schema.GroupVersion) bool
}

func (d withoutDiscovery) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	groups, lists, err := d.Discovery.ServerGroupsAndResources()
	return groups, slices.DeleteFunc(lists, func(l *metav1.APIResourceList) bool {
		gv, _ := schema.ParseGroupVersion(l.GroupVersion)
		return d.which(gv)
	}), err
}

// When a side stops serving autoscalers, the upstream's replicas count again.
func TestAutoscalersAreNoLongerServed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", regiontest.Options{}), down: newSide(t, "down", regiontest.Options{})}
		var stopped atomic.Bool
		p.down.api = without{p.down.api, func(gv schema.GroupVersion) bool { return gv.Group == "autoscaling" && stopped.Load() }}
		p.start(syncer.Options{})
		p.scaled()
		stopped.Store(true)
		time.Sleep(2 * time.Minute)
		p.rest()
		require.EqualValues(t, 2, p.replicas("web"))
	})
}

// An autoscaler that is refused scales nothing downstream, so it does not own any replicas.
func TestRefusedAutoscaler(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Refuse: func(resource schema.GroupResource, _ *unstructured.Unstructured) string {
			if resource == autoscalers.GroupResource() {
				return "no autoscalers here"
			}
			return ""
		}})
		p.scale()
		require.EqualValues(t, 2, p.replicas("web"))
	})
}

// Diff knows the autoscalers before it compares the objects that they target.
func TestDiffOfAutoscaledReplicas(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.scaled()
		p.up.create(deployments, strings.Replace(deployment, "name: web", "name: other", 1))
		p.rest()
		p.stop()
		p.down.patch(deployments, "other", `{"spec":{"replicas":7}}`)
		p.down.patch(deployments, "web", `{"spec":{"replicas":8}}`)
		var changed []string
		for change, err := range p.Diff(t.Context()) {
			require.NoError(t, err)
			changed = append(changed, string(change.Write)+" "+change.Object.Name)
		}
		require.Equal(t, []string{string(syncer.WriteUpdate) + " other"}, changed)
	})
}
