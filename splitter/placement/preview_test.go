// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

func parse(t require.TestingT, text string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &obj.Object))
	return obj
}

const previewWeb = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  uid: web
  labels: {app: web}
  annotations: {splitter.atoll.dev/placement: "a,b", splitter.atoll.dev/placed-by: web, splitter.atoll.dev/division: '{"dependents":true}'}
spec:
  template: {spec: {containers: [{name: web, envFrom: [{configMapRef: {name: env}}]}]}}`

const previewEnv = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: env
  namespace: shop
  labels: {state.workload.kcp.io/a: Sync, state.workload.kcp.io/b: Sync}
  annotations: {splitter.atoll.dev/placement: "a,b", splitter.atoll.dev/placed-by: "(reference)"}`

func previewPolicy(t require.TestingT, kind, namespace, spec string) *unstructured.Unstructured {
	return parse(t, "{apiVersion: splitter.atoll.dev/v1alpha1, kind: "+kind+", metadata: {name: web, namespace: '"+namespace+"'}, spec: "+spec+"}")
}

func previewWorld(t require.TestingT) Observed {
	workloads, others := Options{}.Resources()
	o := Observed{
		Policies:   []*unstructured.Unstructured{previewPolicy(t, "PlacementPolicy", "shop", "{dependents: true}")},
		Namespaces: map[string]map[string]string{"shop": {"team": "shop"}},
		Objects:    map[schema.GroupVersionResource][]*unstructured.Unstructured{},
	}
	for _, name := range []string{"a", "b"} {
		o.Clusters = append(o.Clusters, splitter.Cluster{Name: name, Labels: map[string]string{"name": name}, State: splitter.Placeable})
	}
	for _, of := range others {
		o.Objects[of] = []*unstructured.Unstructured{}
	}
	o.Objects[workloads[0]] = []*unstructured.Unstructured{parse(t, previewWeb)}
	o.Objects[others[0]] = []*unstructured.Unstructured{parse(t, previewEnv)}
	return o
}

func TestPreview(t *testing.T) {
	web, env := schema.GroupResource{Group: "apps", Resource: "deployments"}, schema.GroupResource{Resource: configMaps}
	in := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: name} }
	ab, onlyB := []string{"a", "b"}, []string{"b"}
	both := []Move{
		{Resource: env, Object: in("env"), From: ab, To: onlyB, By: v1alpha1.PlacedByReference},
		{Resource: web, Object: in("web"), From: ab, To: onlyB, By: "web"},
	}
	for _, tt := range []struct {
		name, kind, spec string
		change           func(*Observed)
		want             []Move
		err              string
	}{
		{name: "the present policy moves nothing", spec: "{dependents: true}"},
		{name: "a workload moves with its dependents", spec: "{dependents: true, clusterSelector: {matchLabels: {name: b}}}", want: both},
		{name: "shares change", spec: "{dependents: true, clusters: [{name: a, weight: 3}]}", want: []Move{{Resource: web, Object: in("web"), From: ab, To: ab, By: "web", Redivided: true}}},
		{name: "no cluster is chosen: all stays", spec: "{dependents: true, clusterSelector: {matchLabels: {name: c}}}"},
		{name: "mode None", spec: "{mode: None}", want: []Move{
			{Resource: env, Object: in("env"), From: ab, By: v1alpha1.PlacedByReference},
			{Resource: web, Object: in("web"), From: ab, By: "web", Redivided: true},
		}},
		{name: "suspended", spec: "{suspend: true, clusterSelector: {matchLabels: {name: b}}}"},
		{name: "unknown Services: a Secret stays, a ConfigMap does not depend on them", spec: "{dependents: true, clusterSelector: {matchLabels: {name: b}}}", want: both, change: func(o *Observed) {
			delete(o.Objects, schema.GroupVersionResource{Version: "v1", Resource: services})
		}},
		{name: "unknown workloads: their dependents stay", spec: "{dependents: true, clusterSelector: {matchLabels: {name: b}}}", change: func(o *Observed) {
			delete(o.Objects, web.WithVersion("v1"))
		}},
		{name: "a cluster that drains is left without the policy", spec: "{dependents: true, priority: 1}", change: func(o *Observed) { o.Clusters[0].State = splitter.Draining }},
		{name: "a taint is no longer tolerated", spec: "{dependents: true}", want: both, change: func(o *Observed) {
			o.Clusters[0].Taints = []syncerv1alpha1.Taint{{Key: "repair", Effect: corev1.TaintEffectNoExecute}}
			o.Policies = []*unstructured.Unstructured{previewPolicy(t, "PlacementPolicy", "shop", "{dependents: true, tolerations: [{key: repair, operator: Exists}]}")}
		}},
		{name: "a taint is tolerated until later", spec: "{dependents: true, tolerations: [{key: repair, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]}", change: func(o *Observed) {
			o.Now = time.Date(2026, 1, 1, 0, 0, 59, 0, time.UTC)
			o.Clusters[0].Taints = []syncerv1alpha1.Taint{{Key: "repair", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: o.Now.Add(-59 * time.Second)}}}
			o.Policies = []*unstructured.Unstructured{previewPolicy(t, "PlacementPolicy", "shop", "{dependents: true, tolerations: [{key: repair, operator: Exists}]}")}
		}},
		{name: "a taint is tolerated until now", spec: "{dependents: true, tolerations: [{key: repair, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]}", want: both, change: func(o *Observed) {
			o.Now = time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
			o.Clusters[0].Taints = []syncerv1alpha1.Taint{{Key: "repair", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: o.Now.Add(-60 * time.Second)}}}
			o.Policies = []*unstructured.Unstructured{previewPolicy(t, "PlacementPolicy", "shop", "{dependents: true, tolerations: [{key: repair, operator: Exists}]}")}
		}},
		{name: "a policy of the namespace precedes", kind: "ClusterPlacementPolicy", spec: "{clusterSelector: {matchLabels: {name: b}}}"},
		{name: "cluster-wide, in a selected namespace", kind: "ClusterPlacementPolicy", spec: "{namespaceSelector: {matchLabels: {team: shop}}, dependents: true, clusterSelector: {matchLabels: {name: b}}}", want: []Move{
			both[0], {Resource: web, Object: in("web"), From: ab, To: onlyB, By: v1alpha1.PlacedByClusterWide + "web"},
		}, change: func(o *Observed) { o.Policies = nil }},
		{name: "cluster-wide, in other namespaces", kind: "ClusterPlacementPolicy", spec: "{namespaceSelector: {matchLabels: {team: other}}, clusterSelector: {matchLabels: {name: b}}}", change: func(o *Observed) { o.Policies = nil }},
		{name: "an unreadable selector", spec: "{selector: {matchLabels: {'': x}}}", err: "placement: policy web: "},
		{name: "another policy cannot be read", spec: "{clusterSelector: {matchLabels: {name: b}}}", err: "PlacementPolicy shop/bad", change: func(o *Observed) {
			bad := previewPolicy(t, "PlacementPolicy", "shop", "{selector: {matchLabels: {'': x}}}")
			bad.SetName("bad")
			o.Policies = append(o.Policies, bad)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := previewWorld(t)
			if tt.change != nil {
				tt.change(&o)
			}
			kind, namespace := "PlacementPolicy", "shop"
			if tt.kind != "" {
				kind, namespace = tt.kind, ""
			}
			moves, err := Preview(o, previewPolicy(t, kind, namespace, tt.spec), Options{})
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, tt.want, moves)
		})
	}
}

// A new object is placed by the first policy that selects it.
func TestPreviewPlacesNewObjects(t *testing.T) {
	o := previewWorld(t)
	o.Policies = nil
	web := parse(t, previewWeb)
	web.SetAnnotations(nil)
	o.Objects[schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}] = []*unstructured.Unstructured{web}
	moves, err := Preview(o, previewPolicy(t, "PlacementPolicy", "shop", "{}"), Options{})
	require.NoError(t, err)
	require.Len(t, moves, 1)
	require.Empty(t, moves[0].From)
	require.Equal(t, []string{"a", "b"}, moves[0].To)
}

// Preview changes none of its input, and decides the same for clusters in any order.
func TestPreviewIsPure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, fresh := previewWorld(t), previewWorld(t)
		o.Clusters = drawClusters(t)
		fresh.Clusters = rapid.Permutation(o.Clusters).Draw(t, "order")
		p := newPolicySpec(t, drawSpec(t))
		moves, err := Preview(o, p, Options{})
		require.NoError(t, err)
		again, err := Preview(fresh, p, Options{})
		require.NoError(t, err)
		require.Equal(t, moves, again)
		require.True(t, maps.EqualFunc(previewWorld(t).Objects, o.Objects, func(a, b []*unstructured.Unstructured) bool { return len(a) == len(b) }))
		for of, list := range previewWorld(t).Objects {
			for i := range list {
				require.Equal(t, list[i].Object, o.Objects[of][i].Object)
			}
		}
	})
}

func newPolicySpec(t require.TestingT, spec v1alpha1.PlacementPolicySpec) *unstructured.Unstructured {
	text, err := yaml.Marshal(spec)
	require.NoError(t, err)
	p := previewPolicy(t, "PlacementPolicy", "shop", "{}")
	p.Object["spec"] = parse(t, string(text)).Object
	return p
}
