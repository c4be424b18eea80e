// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/syncer"
)

// If a field is immutable, a change of the field makes the syncer recreate the object if a rule has Recreate, and is
// reported otherwise.
func TestImmutableFields(t *testing.T) {
	of := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	for name, test := range map[string]struct {
		rules []syncer.Rule
		anew  bool
	}{
		"reported":         {nil, false},
		"made anew":        {[]syncer.Rule{{Type: of, Path: "spec.selector", Change: syncer.Recreate}}, true},
		"another field":    {[]syncer.Rule{{Type: of, Path: "spec.strategy", Change: syncer.Recreate}}, false},
		"a field above it": {[]syncer.Rule{{Type: of, Path: "spec", Change: syncer.Recreate}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{Rules: test.rules})
				p.up.create(deployments, deployment)
				p.rest()
				before := p.down.get(deployments, "web")
				p.stop()
				p.reset()
				p.start(syncer.Options{Rules: test.rules, Transform: []syncer.Transformer{func(obj *unstructured.Unstructured) error {
					return errors.Join(unstructured.SetNestedField(obj.Object, "other", "spec", "selector", "matchLabels", "app"),
						unstructured.SetNestedField(obj.Object, "other", "spec", "template", "metadata", "labels", "app"))
				}}})
				p.rest()
				after := p.down.get(deployments, "web")
				if !test.anew {
					require.Equal(t, before.GetUID(), after.GetUID())
					require.Equal(t, []string{"deployments default/web Refused"}, p.problems())
					return
				}
				require.NotEqual(t, before.GetUID(), after.GetUID())
				require.Equal(t, "other", field(after, "spec", "selector", "matchLabels", "app"))
				require.Equal(t, []string{"patch deployments web", "delete deployments web", "patch deployments web"}, p.down.writes())
				require.Empty(t, p.problems())
			})
		})
	}
}

var replicasUp = []syncer.Rule{{Type: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Path: "spec.replicas", Owner: syncer.FirstWriter, Up: true}}

// With Up, a field that an autoscaler sets downstream goes up. The next status upstream has the new generation.
func TestFieldsGoUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Rules: replicasUp})
		p.up.create(deployments, deployment)
		p.rest()
		p.up.patch(deployments, "web", `{"spec":{"replicas":3}}`)
		p.rest()
		require.EqualValues(t, 3, field(p.down.get(deployments, "web"), "spec", "replicas"), "no client downstream owns the field")
		p.down.patch(deployments, "web", `{"spec":{"replicas":7}}`)
		p.rest()
		require.EqualValues(t, 7, field(p.up.get(deployments, "web"), "spec", "replicas"))
		generation := p.down.get(deployments, "web").GetGeneration()
		p.reset()
		p.down.patch(deployments, "web", fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":7}}`, generation), "status")
		p.rest()
		up := p.up.get(deployments, "web")
		require.Equal(t, up.GetGeneration(), field(up, "status", "observedGeneration"))
		require.Equal(t, []string{"patch deployments/status web"}, p.up.writes())

		// If the field and the status change at once, both go up, and the status has the generation that the new field
		// made upstream.
		p.down.patch(deployments, "web", `{"spec":{"replicas":9}}`)
		p.down.patch(deployments, "web", fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":9}}`, generation+1), "status")
		p.rest()
		up = p.up.get(deployments, "web")
		require.EqualValues(t, 9, field(up, "spec", "replicas"))
		require.EqualValues(t, 9, field(up, "status", "replicas"))
		require.Equal(t, up.GetGeneration(), field(up, "status", "observedGeneration"))

		// A change of the field upstream is overwritten, and at rest nothing is written.
		p.up.patch(deployments, "web", `{"spec":{"replicas":1}}`)
		p.rest()
		require.EqualValues(t, 9, field(p.up.get(deployments, "web"), "spec", "replicas"))
		require.EqualValues(t, 9, field(p.down.get(deployments, "web"), "spec", "replicas"))
		p.reset()
		p.stop()
		p.start(syncer.Options{Rules: replicasUp})
		require.Empty(t, p.up.writes())
		require.Empty(t, p.down.writes())
		require.Empty(t, p.overruled)
		require.Equal(t, []string{"syncer.atoll.dev/my-cluster"}, p.up.get(deployments, "web").GetFinalizers())
	})
}

// If a Splitter owns the replicas of a shard upstream, the replicas of the downstream object do not go up: Splitter and
// syncer do not overwrite each other.
func TestWhatASplitterOwnsDoesNotGoUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Rules: replicasUp})
		shard := p.up.create(deployments, deployment)
		desired := func(replicas int64) *unstructured.Unstructured {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": replicas}}}
			o.SetName(shard.GetName())
			return o
		}
		apply := func(replicas int64) {
			_, err := p.up.of(deployments).Apply(t.Context(), "web", desired(replicas), metav1.ApplyOptions{FieldManager: splitterv1alpha1.Manager, Force: true})
			require.NoError(t, err)
		}
		apply(4)
		p.rest()
		p.down.patch(deployments, "web", `{"spec":{"replicas":7}}`)
		p.rest()
		require.EqualValues(t, 4, field(p.up.get(deployments, "web"), "spec", "replicas"))
		require.EqualValues(t, 7, field(p.down.get(deployments, "web"), "spec", "replicas"), "the autoscaler owns it downstream")

		// After a restart of the syncer and a later apply by the Splitter, the replicas do not go up either.
		p.stop()
		p.reset()
		p.start(syncer.Options{Rules: replicasUp})
		apply(5)
		p.rest()
		require.EqualValues(t, 5, field(p.up.get(deployments, "web"), "spec", "replicas"))
		require.Zero(t, p.up.writesBy("atoll-syncer-fields-my-cluster"))

		// Once the Splitter no longer owns the replicas, they go up.
		_, err := p.up.of(deployments).Apply(t.Context(), "web", &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
		}}, metav1.ApplyOptions{FieldManager: splitterv1alpha1.Manager, Force: true})
		require.NoError(t, err)
		p.rest()
		require.EqualValues(t, 7, field(p.up.get(deployments, "web"), "spec", "replicas"))
	})
}

// If a rule has Up, a field that belongs to the downstream goes up. The other fields of the upstream object stay, and
// at rest nothing is written upstream.
func TestDownstreamFieldsGoUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Rules: []syncer.Rule{{Type: schema.GroupKind{Kind: "Service"}, Path: "spec.clusterIP", Owner: syncer.Downstream, Up: true}}})
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}")
		p.up.create(services, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: {app: a}, ports: [{port: 80}]}}")
		p.rest()
		p.down.patch(services, "a", `{"spec":{"clusterIP":"10.9.9.9"}}`)
		p.rest()
		require.Equal(t, "10.9.9.9", field(p.up.get(services, "a"), "spec", "clusterIP"))
		require.Equal(t, map[string]any{"app": "a"}, field(p.up.get(services, "a"), "spec", "selector"))
		p.reset()
		p.rest()
		require.Empty(t, p.up.writes())
	})
}

// A status that a controller upstream writes goes down if a rule gives it to the upstream, in whole or in part.
func TestStatusGoesDown(t *testing.T) {
	of := schema.GroupKind{Group: "example.org", Kind: "Widget"}
	t.Run("in whole", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			p := newPair(t, syncer.Options{Rules: []syncer.Rule{{Type: of, Path: "status", Owner: syncer.Upstream}}})
			p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}")
			p.rest()
			p.up.patch(widgets, "a", `{"spec":{"size":2}}`)
			p.rest()
			p.reset()
			p.up.patch(widgets, "a", `{"status":{"observedGeneration":2,"address":"1.1.1.1"}}`, "status")
			p.rest()
			down := p.down.get(widgets, "a")
			require.Equal(t, "1.1.1.1", field(down, "status", "address"))
			require.Equal(t, down.GetGeneration(), field(down, "status", "observedGeneration"))
			require.Equal(t, []string{"patch widgets/status a"}, p.down.writes())
			p.down.patch(widgets, "a", `{"status":{"address":"6.6.6.6"}}`, "status")
			p.rest()
			require.Equal(t, "1.1.1.1", field(p.down.get(widgets, "a"), "status", "address"))
			require.Equal(t, "1.1.1.1", field(p.up.get(widgets, "a"), "status", "address"))
			require.Len(t, p.up.writes(), 1, "only the test's write")
		})
	})
	t.Run("in part", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			p := newPair(t, syncer.Options{Rules: []syncer.Rule{{Type: of, Path: "status.address", Owner: syncer.Upstream}}})
			p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}}")
			p.rest()
			p.up.patch(widgets, "a", `{"status":{"address":"1.1.1.1"}}`, "status")
			p.rest()
			p.down.patch(widgets, "a", `{"status":{"ready":true}}`, "status")
			p.rest()
			for _, s := range []*side{p.up, p.down} {
				require.JSONEq(t, `{"address":"1.1.1.1","ready":true}`, asJSON(t, field(s.get(widgets, "a"), "status")))
			}
			p.reset()
			p.stop()
			p.start(syncer.Options{Rules: []syncer.Rule{{Type: of, Path: "status.address", Owner: syncer.Upstream}}})
			require.Empty(t, p.up.writes())
			require.Empty(t, p.down.writes())
		})
	})
	t.Run("without a subresource", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			p := newPair(t, syncer.Options{Rules: []syncer.Rule{{Type: schema.GroupKind{Group: "example.org", Kind: "Gadget"}, Path: "status", Owner: syncer.Upstream}}})
			p.up.create(gadgets, "{apiVersion: example.org/v1, kind: Gadget, metadata: {name: a}, spec: {size: 1}}")
			p.rest()
			p.up.patch(gadgets, "a", `{"status":{"observedGeneration":2,"address":"1.1.1.1"}}`)
			p.rest()
			require.Equal(t, "1.1.1.1", field(p.down.get(gadgets, "a"), "status", "address"))
			p.reset()
			p.rest()
			require.Empty(t, p.down.writes())
		})
	})
}

// If a rule makes the syncer recreate an object often, the syncer does not count that as a fight.
func TestMadeAnewAgainAndAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{
			DeleteCap: syncer.DeleteCap{Objects: -1},
			Rules:     []syncer.Rule{{Type: schema.GroupKind{Kind: "ConfigMap"}, Path: "data", Change: syncer.Recreate}},
			Transform: []syncer.Transformer{func(obj *unstructured.Unstructured) error {
				return unstructured.SetNestedField(obj.Object, true, "immutable")
			}},
		})
		p.up.create(configMaps, a)
		p.rest()
		for i := range 8 {
			p.up.patch(configMaps, "a", fmt.Sprintf(`{"data":{"k":"%d"}}`, i))
			p.rest()
			require.Equal(t, fmt.Sprint(i), field(p.down.get(configMaps, "a"), "data", "k"))
		}
		require.Empty(t, p.problems())
	})
}

// A status that belongs to the upstream goes down when the downstream object is created, although the status does
// not change then.
func TestStatusGoesDownWithTheObject(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Rules: []syncer.Rule{{Type: schema.GroupKind{Group: "example.org", Kind: "Widget"}, Path: "status", Owner: syncer.Upstream}}})
		p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a, labels: {not: yet}}, spec: {size: 1}, status: {address: 1.1.1.1}}")
		p.up.patch(widgets, "a", `{"metadata":{"labels":{"workloads.kcp.io/cluster":"my-cluster"}}}`)
		p.rest()
		require.Equal(t, "1.1.1.1", field(p.down.get(widgets, "a"), "status", "address"))
	})
}
