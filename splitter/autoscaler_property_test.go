// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// autoscaledModel is an autoscaled Deployment, its shards, the parts of its autoscaler, and the clusters that follow both
// with any delay.
type autoscaledModel struct {
	autoscaler, parent *unstructured.Unstructured
	shards, parts      map[string]*unstructured.Unstructured
	clusters           map[string]*modelCluster
	least, most, surge int64
}

type modelCluster struct {
	draining bool
	load     int64
	min, max int64 // of the autoscaler's part, as the cluster has observed it
	pods     int64 // running, all available
}

func object(kind string, spec map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "spec": spec}}
	obj.SetName("web")
	obj.SetUID("u")
	return obj
}

func newAutoscaledModel(t *rapid.T) *autoscaledModel {
	m := &autoscaledModel{shards: map[string]*unstructured.Unstructured{}, parts: map[string]*unstructured.Unstructured{}, clusters: map[string]*modelCluster{}}
	m.least = rapid.Int64Range(1, 6).Draw(t, "min")
	m.most = m.least + rapid.Int64Range(0, 10).Draw(t, "max - min")
	for i := range rapid.IntRange(1, 4).Draw(t, "clusters") {
		m.clusters[string(rune('a'+i))] = &modelCluster{}
	}
	m.surge = rapid.Int64Range(1, 3).Draw(t, "surge")
	m.autoscaler = object("HorizontalPodAutoscaler", map[string]any{"minReplicas": m.least, "maxReplicas": m.most,
		"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}})
	m.parent = object("Deployment", map[string]any{"replicas": rapid.Int64Range(1, 12).Draw(t, "replicas"), "template": map[string]any{},
		"strategy": map[string]any{"rollingUpdate": map[string]any{"maxUnavailable": int64(0), "maxSurge": m.surge}}})
	return m
}

// observed returns the inputs of a division.
func (m *autoscaledModel) observed() (of followed, parts, shards []Shard) {
	of.ending = map[string]int64{}
	var list []Cluster
	for _, name := range slices.Sorted(maps.Keys(m.clusters)) {
		c := Cluster{Name: name, State: Placeable}
		if m.clusters[name].draining {
			c.State = Draining
		}
		list = append(list, c)
		if p := m.parts[name]; p != nil {
			parts = append(parts, Shard{Cluster: name, Object: p})
		}
		if s := m.shards[name]; s != nil {
			shards = append(shards, Shard{Cluster: name, Object: s})
			runs := max(count(s, 1, "spec", "replicas"), count(s, 0, "status", "replicas"))
			if s.GetDeletionTimestamp() != nil {
				of.ending[name] = runs
				continue
			}
			of.parts = append(of.parts, part{cluster: name, desired: count(s, 1, "spec", "replicas"), available: count(s, 0, "status", "availableReplicas"), runs: runs, floor: floorOf(s)})
		}
	}
	d, shares, _ := Everywhere(m.parent, list)
	d.UID = "u"
	of.name, of.placed, of.demand, of.shares, of.desired = "web", true, d, shares, count(m.parent, 1, "spec", "replicas")
	return of, parts, shards
}

// scaleParts is one division of the autoscaler. It reports whether it wrote.
func (m *autoscaledModel) scaleParts(t require.TestingT) bool {
	of, parts, _ := m.observed()
	_, want, err := autoscalers{}.cut(m.autoscaler, situation{workloads: []followed{of}}, parts)
	require.NoError(t, err)
	return m.write(m.parts, want)
}

// cutShards is one division of the Deployment. It reports whether it wrote.
func (m *autoscaledModel) cutShards(t require.TestingT) bool {
	of, parts, shards := m.observed()
	s, err := autoscalers{}.scaling(m.autoscaler, of, parts).plan()
	require.NoError(t, err)
	if s.replicas != of.desired && len(s.minima) > 0 && !s.paused() {
		require.NoError(t, unstructured.SetNestedField(m.parent.Object, s.replicas, "spec", "replicas"))
		return true
	}
	_, want, err := s.cut(Deployments(), m.parent, shards)
	require.NoError(t, err)
	return m.write(m.shards, want)
}

func (m *autoscaledModel) write(have map[string]*unstructured.Unstructured, want []Shard) (wrote bool) {
	cut := byCluster(want)
	for name := range m.clusters {
		next, ok := cut[name]
		present := have[name]
		switch {
		case present != nil && present.GetDeletionTimestamp() != nil:
		case !ok && present != nil:
			present.SetDeletionTimestamp(new(metav1.Now())) // until the cluster has deleted its object
			wrote = true
		case !ok:
		case present == nil:
			next.Object.SetGeneration(1)
			have[name], wrote = next.Object, true
		case fmt.Sprint(present.Object["spec"], present.GetAnnotations()) != fmt.Sprint(next.Object.Object["spec"], next.Object.GetAnnotations()):
			next.Object.SetGeneration(present.GetGeneration() + 1)
			next.Object.Object["status"] = present.Object["status"]
			have[name], wrote = next.Object, true
		}
	}
	return wrote
}

// sync lets a cluster observe its shard and its part, and act: the autoscaler scales, and the pods follow.
func (m *autoscaledModel) sync(name string) {
	for _, objects := range []map[string]*unstructured.Unstructured{m.shards, m.parts} {
		if obj := objects[name]; obj != nil && obj.GetDeletionTimestamp() != nil {
			delete(objects, name)
		}
	}
	c, shard, part := m.clusters[name], m.shards[name], m.parts[name]
	c.min, c.max = 0, 0
	if part != nil {
		c.min, c.max = count(part, 1, "spec", "minReplicas"), count(part, 1, "spec", "maxReplicas")
	}
	if shard == nil {
		c.pods = 0
		return
	}
	n := count(shard, 1, "spec", "replicas")
	if part != nil {
		n = m.act(name, max(n, c.pods))
	}
	c.pods = n
	shard.Object["status"] = map[string]any{"observedGeneration": shard.GetGeneration(), "replicas": n, "updatedReplicas": n, "availableReplicas": n, "readyReplicas": n}
}

// act lets the autoscaler of a cluster scale, by the bounds that the cluster has observed.
func (m *autoscaledModel) act(name string, n int64) int64 {
	c := m.clusters[name]
	if n == 0 {
		return 0
	}
	n = min(max(c.load, c.min), c.max)
	limited := map[string]any{"type": "ScalingLimited", "status": "False", "reason": "DesiredWithinRange"}
	if c.load > c.max {
		limited["status"], limited["reason"] = "True", "TooManyReplicas"
	}
	if part := m.parts[name]; part != nil {
		part.Object["status"] = map[string]any{"desiredReplicas": n, "currentReplicas": n, "conditions": []any{limited}}
	}
	return n
}

func (m *autoscaledModel) pods() (n int64) {
	for _, c := range m.clusters {
		n += c.pods
	}
	return n
}

// settle lets everything come to rest.
func (m *autoscaledModel) settle(t *rapid.T, check func()) {
	for round := 0; ; round++ {
		require.Less(t, round, 300, "it does not come to rest: %v", m)
		wrote := m.scaleParts(t)
		wrote = m.cutShards(t) || wrote
		before := m.String()
		for _, name := range slices.Sorted(maps.Keys(m.clusters)) {
			m.sync(name)
			check()
		}
		if !wrote && before == m.String() {
			return
		}
	}
}

func (m *autoscaledModel) String() string {
	text := fmt.Sprintf("replicas %d of %d-%d", count(m.parent, 1, "spec", "replicas"), m.least, m.most)
	for _, name := range slices.Sorted(maps.Keys(m.clusters)) {
		c := m.clusters[name]
		text += fmt.Sprintf("; %s: %+v", name, *c)
		if s := m.shards[name]; s != nil {
			text += fmt.Sprintf(" shard %d floor %d observed %d of %d", count(s, 1, "spec", "replicas"), floorOf(s),
				count(s, 0, "status", "observedGeneration"), s.GetGeneration())
		}
		if p := m.parts[name]; p != nil {
			text += fmt.Sprintf(" part %d-%d wants %d", count(p, 1, "spec", "minReplicas"), count(p, 1, "spec", "maxReplicas"), count(p, 0, "status", "desiredReplicas"))
		}
	}
	return text
}

// Loads change, clusters drain and return, and clusters follow with any delay. The pods are never fewer than minReplicas.
// If no other drain begins or ends meanwhile, they are never more than maxReplicas, and maxSurge while replicas move.
// At rest the parts add up to the autoscaler.
func TestAutoscaledReplicasStayWithinBounds(t *testing.T) {
	for name, calm := range map[string]bool{"one drain at a time": true, "drains at any time": false} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := newAutoscaledModel(t)
				m.settle(t, func() {})
				check := func() {
					t.Logf("%v", m)
					require.GreaterOrEqual(t, m.pods(), m.least, "%v", m)
					if calm {
						require.LessOrEqual(t, m.pods(), m.most+max(m.least, m.surge), "%v", m)
					}
				}
				check()
				for range rapid.IntRange(0, 40).Draw(t, "steps") {
					m.step(t, calm, check)
					check()
				}
				m.settle(t, check)
				m.atRest(t)
			})
		})
	}
}

// step is one random event. If calm is true, no drain begins or ends before everything is at rest.
func (m *autoscaledModel) step(t *rapid.T, calm bool, check func()) {
	names := slices.Sorted(maps.Keys(m.clusters))
	name := rapid.SampledFrom(names).Draw(t, "cluster")
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0:
		m.clusters[name].load = rapid.Int64Range(0, 12).Draw(t, "load")
	case 1:
		if calm {
			m.settle(t, check)
		}
		drains := 0
		for _, c := range m.clusters {
			if c.draining {
				drains++
			}
		}
		m.clusters[name].draining = !m.clusters[name].draining && drains < len(names)-1
	case 2, 3, 4:
		m.scaleParts(t)
	case 5, 6:
		m.cutShards(t)
	default:
		m.sync(name)
	}
}

func (m *autoscaledModel) atRest(t *rapid.T) {
	var least, most, replicas int64
	for name, p := range m.parts {
		least += count(p, 0, "spec", "minReplicas")
		most += count(p, 0, "spec", "maxReplicas")
		replicas += m.clusters[name].pods
		require.Zero(t, floorOf(m.shards[name]), "%v", m)
		require.False(t, m.clusters[name].draining, "%v", m)
	}
	require.Equal(t, m.least, least, "%v", m)
	require.Equal(t, m.most, most, "%v", m)
	require.Equal(t, m.pods(), replicas, "%v", m)
	require.Equal(t, replicas, count(m.parent, 0, "spec", "replicas"), "%v", m)
}
