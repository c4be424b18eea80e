// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// permitted is what the specs of all shards permit together.
type permitted struct{ unavailable, surge, paused, marked int64 }

func permits(t require.TestingT, shards []splitter.Shard) (p permitted) {
	for _, s := range shards {
		_, marked := s.Object.GetAnnotations()[v1alpha1.RolloutAnnotation]
		if marked {
			p.marked++
		}
		if paused, _, _ := unstructured.NestedBool(s.Object.Object, "spec", "paused"); paused {
			p.paused++
			continue
		}
		rolling, _, err := unstructured.NestedMap(s.Object.Object, "spec", "strategy", "rollingUpdate")
		require.NoError(t, err)
		unavailable, surge := rolling["maxUnavailable"].(int64), rolling["maxSurge"].(int64)
		require.Positive(t, unavailable+surge)
		p.unavailable, p.surge = p.unavailable+unavailable, p.surge+surge
	}
	return p
}

// complete returns the shards as their clusters report them when all is done.
func complete(t require.TestingT, shards []splitter.Shard) []splitter.Shard {
	var list []splitter.Shard
	for _, s := range shards {
		obj := s.Object.DeepCopy()
		n, _, err := unstructured.NestedInt64(obj.Object, "spec", "replicas")
		require.NoError(t, err)
		obj.SetGeneration(obj.GetGeneration() + 1)
		obj.Object["status"] = values{"observedGeneration": obj.GetGeneration(), "replicas": n, "readyReplicas": n, "availableReplicas": n, "updatedReplicas": n}
		list = append(list, splitter.Shard{Cluster: s.Cluster, Object: obj})
	}
	return list
}

func web(replicas, unavailable, surge int64, image string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: values{"apiVersion": "apps/v1", "kind": "Deployment", "spec": values{
		"replicas": replicas, "strategy": values{"rollingUpdate": values{"maxUnavailable": unavailable, "maxSurge": surge}},
		"template": values{"metadata": values{"creationTimestamp": nil}, "spec": values{"containers": []any{values{"name": "web", "image": image}}}},
	}}}
}

// When the template changes, what the shards permit adds up to at most what the parent permits, and at
// least one shard can begin. When all shards have the new template, they have the parent's strategy.
func TestRolloutSharesTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 40).Draw(t, "replicas")
		unavailable, surge := rapid.Int64Range(0, min(n, 12)).Draw(t, "unavailable"), rapid.Int64Range(0, 12).Draw(t, "surge")
		if unavailable+surge == 0 {
			surge = 1
		}
		clusters := all("a", "b", "c", "d", "e", "f", "g", "h")[:rapid.IntRange(2, 8).Draw(t, "clusters")]
		cut := func(image string, have []splitter.Shard) []splitter.Shard {
			_, shards, err := splitter.Deployments().Cut(web(n, unavailable, surge, image), splitter.Demand{}, clusters, have)
			require.NoError(t, err)
			return shards
		}
		have := complete(t, cut("web:1", nil))
		if len(have) == 1 {
			return // as without the Splitter
		}
		begun := cut("web:2", have)
		p := permits(t, begun)
		require.LessOrEqual(t, p.unavailable, unavailable)
		require.LessOrEqual(t, p.surge, surge)
		require.Less(t, p.paused, int64(len(begun)))
		require.Equal(t, int64(len(begun)), p.marked)
		for _, s := range begun {
			require.Equal(t, []any{values{"name": "web", "image": "web:2"}}, field([]splitter.Shard{s}, "spec.template.spec.containers")[s.Cluster])
		}
		ended := cut("web:2", complete(t, begun))
		require.Equal(t, permitted{unavailable * int64(len(ended)), surge * int64(len(ended)), 0, 0}, permits(t, ended))
	})
}

// The whole budget counts: if a cluster has as many unavailable replicas as the parent permits, no
// other cluster replaces available ones, but that cluster may replace its unavailable ones.
func TestRolloutCountsUnavailableReplicas(t *testing.T) {
	const replicas, budget = 200, 25
	_, shards, err := splitter.Deployments().Cut(web(replicas, budget, 0, "web:1"), splitter.Demand{}, all("a", "b"), nil)
	require.NoError(t, err)
	have := complete(t, shards)
	require.NoError(t, unstructured.SetNestedField(have[0].Object.Object, int64(0), "status", "availableReplicas"))
	require.NoError(t, unstructured.SetNestedField(have[0].Object.Object, int64(0), "status", "readyReplicas"))
	_, begun, err := splitter.Deployments().Cut(web(replicas, budget, 0, "web:2"), splitter.Demand{}, all("a", "b"), have)
	require.NoError(t, err)
	require.Equal(t, values{"b": true}, field(begun, "spec.paused"))
	require.Equal(t, int64(budget), field(begun[:1], "spec.strategy.rollingUpdate.maxUnavailable")["a"])
}

// With Rollout.Clusters of one, the first cluster of Rollout.Order gets the new template alone.
func TestRolloutInOrder(t *testing.T) {
	d := splitter.Demand{Rollout: splitter.Rollout{Order: []string{"c", "a"}, Clusters: 1}}
	cut := func(image string, have []splitter.Shard) []splitter.Shard {
		_, shards, err := splitter.Deployments().Cut(web(9, 1, 1, image), d, all("a", "b", "c"), have)
		require.NoError(t, err)
		return shards
	}
	have := complete(t, cut("web:1", nil))
	first := cut("web:2", have)
	require.Equal(t, values{"a": true, "b": true}, field(first, "spec.paused"))
	for i, s := range complete(t, first) {
		if s.Cluster == "c" {
			have[i] = s // the others still have the old template in their status
			continue
		}
		have[i] = splitter.Shard{Cluster: s.Cluster, Object: s.Object}
		delete(s.Object.Object["status"].(map[string]any), "updatedReplicas")
	}
	require.Equal(t, values{"b": true}, field(cut("web:2", have), "spec.paused"))
}

// A user who pauses the parent stops the rollout in all clusters.
func TestRolloutOfAPausedParent(t *testing.T) {
	_, shards, err := splitter.Deployments().Cut(web(6, 2, 2, "web:1"), splitter.Demand{}, all("a", "b"), nil)
	require.NoError(t, err)
	parent := web(6, 2, 2, "web:2")
	require.NoError(t, unstructured.SetNestedField(parent.Object, true, "spec", "paused"))
	_, paused, err := splitter.Deployments().Cut(parent, splitter.Demand{}, all("a", "b"), complete(t, shards))
	require.NoError(t, err)
	require.Equal(t, permitted{paused: 2, marked: 2}, permits(t, paused))
	require.Equal(t, values{"a": int64(0), "b": int64(0)}, field(paused, "spec.strategy.rollingUpdate.maxSurge"))
}

// A field that a webhook adds to the template of a shard begins no rollout. A field that another
// client changes does, and so does one that the parent no longer has.
func TestRolloutOfChangedTemplates(t *testing.T) {
	_, shards, err := splitter.Deployments().Cut(web(6, 2, 2, "web:1"), splitter.Demand{}, all("a", "b"), nil)
	require.NoError(t, err)
	path := []string{"spec", "template", "spec", "containers"}
	for name, test := range map[string]struct {
		containers []any
		begins     int64
	}{
		"an added container": {[]any{values{"name": "proxy", "image": "x"}, values{"name": "web", "image": "web:1"}}, 0},
		"an added field":     {[]any{values{"name": "web", "image": "web:1", "tty": true}}, 0},
		"another image":      {[]any{values{"name": "web", "image": "theirs"}}, 1},
		"no container":       {[]any{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			have := complete(t, shards)
			require.NoError(t, unstructured.SetNestedSlice(have[0].Object.Object, test.containers, path...))
			_, next, err := splitter.Deployments().Cut(web(6, 2, 2, "web:1"), splitter.Demand{}, all("a", "b"), have)
			require.NoError(t, err)
			require.Equal(t, test.begins, permits(t, next).marked)
		})
	}
	t.Run("a field that is gone from the parent", func(t *testing.T) {
		parent := web(6, 2, 2, "web:1")
		require.NoError(t, unstructured.SetNestedField(parent.Object, int64(5), "spec", "template", "spec", "terminationGracePeriodSeconds"))
		_, shards, err := splitter.Deployments().Cut(parent, splitter.Demand{}, all("a", "b"), nil)
		require.NoError(t, err)
		_, next, err := splitter.Deployments().Cut(web(6, 2, 2, "web:1"), splitter.Demand{}, all("a", "b"), complete(t, shards))
		require.NoError(t, err)
		require.Equal(t, int64(2), permits(t, next).marked)
	})
}

// A cluster that creates pods may create all of them before it observes that it shall have fewer. Until
// then they count for maxSurge. A cluster that has all its pods creates none, and needs no annotation.
func TestScalingRemembersWhatItTookBack(t *testing.T) {
	cut := func(n int64, have []splitter.Shard) []splitter.Shard {
		_, shards, err := splitter.Deployments().Cut(web(n, 0, 1, "web:1"), splitter.Demand{}, all("a", "b"), have)
		require.NoError(t, err)
		return shards
	}
	annotations := func(shards []splitter.Shard) map[string]string {
		list := map[string]string{}
		for _, s := range shards {
			list[s.Cluster] = s.Object.GetAnnotations()[v1alpha1.PriorAnnotation]
		}
		return list
	}
	begun := complete(t, cut(12, complete(t, cut(4, nil))))
	for _, number := range []string{"replicas", "readyReplicas", "availableReplicas", "updatedReplicas"} {
		require.NoError(t, unstructured.SetNestedField(begun[0].Object.Object, int64(2), "status", number)) // a has created none yet
	}
	less := cut(4, begun)
	require.Equal(t, values{"a": int64(2), "b": int64(2)}, field(less, "spec.replicas"))
	require.Equal(t, map[string]string{"a": "maxUnavailable=0,maxSurge=4,fewer=0", "b": ""}, annotations(less))

	unseen := complete(t, less)
	unseen[0].Object.SetGeneration(100)
	more := cut(8, unseen)
	require.Equal(t, values{"a": int64(2), "b": int64(3)}, field(more, "spec.replicas"), "a may have six pods")
	require.Equal(t, annotations(less), annotations(more))
	require.Equal(t, values{"a": int64(4), "b": int64(4)}, field(cut(8, complete(t, more)), "spec.replicas"))
}

// A spec that another mode or an earlier version of the Splitter has written may replace pods without
// an annotation. Until its cluster has observed it, it counts with its whole strategy.
func TestRolloutAfterAnotherMode(t *testing.T) {
	recreate := values{"type": "Recreate"}
	for name, strategy := range map[string]values{
		"Recreate":           recreate,
		"an earlier version": {"rollingUpdate": values{"maxUnavailable": int64(4), "maxSurge": int64(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			parent := web(10, 4, 0, "web:2")
			require.NoError(t, unstructured.SetNestedMap(parent.Object, recreate, "spec", "strategy"))
			_, shards, err := splitter.Deployments().Cut(parent, splitter.Demand{}, all("a", "b"), nil)
			require.NoError(t, err)
			have := complete(t, shards)
			for _, s := range have {
				require.NotContains(t, s.Object.GetAnnotations(), v1alpha1.TemplateAnnotation)
				require.NoError(t, unstructured.SetNestedMap(s.Object.Object, strategy, "spec", "strategy"))
			}
			cut := func() values {
				_, next, err := splitter.Deployments().Cut(web(10, 4, 0, "web:3"), splitter.Demand{}, all("a", "b"), have)
				require.NoError(t, err)
				return field(next, "spec.paused")
			}
			require.Empty(t, cut(), "all pods have the template web:2")
			have[1].Object.SetGeneration(1)
			require.NoError(t, unstructured.SetNestedField(have[1].Object.Object, int64(0), "status", "observedGeneration"))
			require.NotContains(t, cut(), "a", "the spec of b has never changed")
			have[1].Object.SetGeneration(100)
			require.Equal(t, values{"a": true}, cut(), "b may still replace the pods of web:1")
		})
	}
}

// A shard that one cluster has alone keeps its annotation, so that no write is needed when it gets company. It loses the
// annotation in the write that changes its template.
func TestTemplateAnnotationOfALoneShard(t *testing.T) {
	cut := func(image string, have []splitter.Shard) []splitter.Shard {
		_, shards, err := splitter.Deployments().Cut(web(4, 1, 1, image), splitter.Demand{}, all("a"), have)
		require.NoError(t, err)
		return shards
	}
	first := cut("web:1", nil)
	require.Contains(t, first[0].Object.GetAnnotations(), v1alpha1.TemplateAnnotation)
	alone := cut("web:1", complete(t, first))
	require.Equal(t, first[0].Object.Object, alone[0].Object.Object)
	next := cut("web:2", complete(t, alone))
	require.Empty(t, next[0].Object.GetAnnotations())
	require.Empty(t, cut("web:2", complete(t, next))[0].Object.GetAnnotations())
}

// The annotation of a shard keeps what its cluster may still follow, until the cluster has observed
// the present spec.
func TestRolloutRemembersWhatItTookBack(t *testing.T) {
	parent := web(10, 4, 0, "web:2")
	_, shards, err := splitter.Deployments().Cut(web(10, 4, 0, "web:1"), splitter.Demand{}, all("a", "b"), nil)
	require.NoError(t, err)
	cut := func(have []splitter.Shard) []splitter.Shard {
		_, shards, err := splitter.Deployments().Cut(parent, splitter.Demand{}, all("a", "b"), have)
		require.NoError(t, err)
		return shards
	}
	begun := cut(complete(t, shards))
	require.Equal(t, values{"a": int64(2), "b": int64(2)}, field(begun, "spec.strategy.rollingUpdate.maxUnavailable"))
	report := func(shards []splitter.Shard, broken ...int64) []splitter.Shard {
		list := complete(t, shards)
		for i, n := range broken {
			status := list[i].Object.Object["status"].(map[string]any)
			status["updatedReplicas"], status["availableReplicas"], status["readyReplicas"] = int64(1), 5-n, 5-n
		}
		return list
	}
	again := cut(report(begun, 0, 4))
	require.Equal(t, values{"b": int64(2)}, field(again[1:], "spec.strategy.rollingUpdate.maxUnavailable"), "its unavailable replicas")
	require.Equal(t, values{"a": true}, field(again[:1], "spec.paused"), "took back what was not used yet")
	require.Equal(t, "maxUnavailable=2,maxSurge=0,fewer=0", again[0].Object.GetAnnotations()[v1alpha1.PriorAnnotation])
	unseen := report(again, 0, 0)
	unseen[0].Object.SetGeneration(100) // a has not observed that it is paused: it may still take two
	require.Equal(t, values{"b": int64(2)}, field(cut(unseen)[1:], "spec.strategy.rollingUpdate.maxUnavailable"))
	unseen[0].Object.SetGeneration(unseen[0].Object.Object["status"].(map[string]any)["observedGeneration"].(int64))
	require.Empty(t, field(cut(unseen), "spec.paused"), "a has observed it, and gets a part again")
}

// The status of a shard whose rollout has begun may still be that of the old template. The shard then
// keeps its part of the budget.
func TestRolloutOfAnUnobservedTemplate(t *testing.T) {
	cut := func(image string, have []splitter.Shard) []splitter.Shard {
		_, shards, err := splitter.Deployments().Cut(web(10, 4, 0, image), splitter.Demand{}, all("a", "b"), have)
		require.NoError(t, err)
		return shards
	}
	have := complete(t, cut("web:1", nil))
	begun := cut("web:2", have)
	var written []splitter.Shard
	for i, s := range begun {
		obj := s.Object.DeepCopy()
		obj.SetGeneration(2)
		obj.Object["status"] = have[i].Object.Object["status"]
		written = append(written, splitter.Shard{Cluster: s.Cluster, Object: obj})
	}
	for i, s := range cut("web:2", written) {
		require.Equal(t, begun[i].Object.Object, s.Object.Object)
	}
}
