// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/splitter"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func setWith(spec map[string]any) *unstructured.Unstructured {
	all := map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": "x"}},
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "x"}, "creationTimestamp": nil}},
	}
	maps.Copy(all, spec)
	set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "splitter.atoll.dev/v1alpha1", "kind": "ClusterDaemonSet", "spec": all}}
	set.SetName("set")
	set.SetNamespace("default")
	set.SetUID("uid")
	set.SetGeneration(3)
	return set
}

// copyWith returns a Deployment as it is written for a cluster, with a status.
func copyWith(set *unstructured.Unstructured, cluster string, observed, replicas, updated, ready int64) *unstructured.Unstructured {
	obj := newCopy(set, cluster, "label")
	obj.SetGeneration(2)
	obj.Object["status"] = map[string]any{"observedGeneration": observed, "replicas": replicas, "updatedReplicas": updated, "readyReplicas": ready}
	return obj
}

// A cluster counts as ready only if it runs exactly the present template, completely.
func TestReady(t *testing.T) {
	two := setWith(map[string]any{"replicasPerCluster": int64(2)})
	for name, c := range map[string]struct {
		observed, replicas, updated, ready int64
		state                              state
		want                               bool
		progress                           string
	}{
		"complete":              {2, 2, 2, 2, applied, true, ""},
		"not written yet":       {2, 2, 2, 2, pending, false, "rolls it out"},
		"a write failed":        {2, 2, 2, 2, failed, false, "could not be written"},
		"not observed yet":      {1, 2, 2, 2, applied, false, "rolls it out"},
		"one is not ready":      {2, 2, 2, 1, applied, false, "1 of 2"},
		"an old pod still runs": {2, 3, 2, 2, applied, false, "rolls it out"},
		"old pods are ready":    {2, 3, 1, 3, applied, false, "rolls it out"},
	} {
		t.Run(name, func(t *testing.T) {
			p := part{cluster: "a", reachable: true, current: copyWith(two, "a", c.observed, c.replicas, c.updated, c.ready), desired: newCopy(two, "a", "label"), state: c.state}
			require.Equal(t, c.want, p.ready())
			if !c.want {
				require.Equal(t, c.progress, p.progress())
			}
		})
	}
	none := setWith(map[string]any{"replicasPerCluster": int64(0)})
	p := part{cluster: "a", reachable: true, current: copyWith(none, "a", 2, 0, 0, 0), desired: newCopy(none, "a", "label"), state: applied}
	require.True(t, p.ready(), "no replicas are desired")
	p.current.SetDeletionTimestamp(&metav1.Time{Time: now})
	require.False(t, p.ready())
	require.Equal(t, "has no Deployment yet", p.progress())
}

// The condition Ready keeps its time while its status stays the same, and takes a new one otherwise.
func TestTimeOfTheCondition(t *testing.T) {
	set := setWith(nil)
	set.Object["status"] = status(set, plan{}, now)
	at := func(p plan, later time.Duration) any {
		return status(set, p, now.Add(later))["conditions"].([]any)[0].(map[string]any)["lastTransitionTime"]
	}
	require.Equal(t, "2026-01-01T00:00:00Z", at(plan{parts: []part{{cluster: "a", reachable: true}}}, time.Hour), "still False")
	require.Equal(t, "2026-01-01T01:00:00Z", at(plan{parts: []part{{cluster: "a"}}}, time.Hour), "Unknown now")
}

func drawFacts(t *rapid.T) facts {
	spec := map[string]any{}
	if rapid.Bool().Draw(t, "selects") {
		spec["clusterSelector"] = map[string]any{"matchLabels": map[string]any{"zone": rapid.SampledFrom([]string{"one", "two"}).Draw(t, "zone")}}
	}
	if rapid.IntRange(0, 9).Draw(t, "misread") == 0 {
		spec["selector"] = rapid.SampledFrom([]any{map[string]any{}, "text", map[string]any{"matchLabels": map[string]any{"app": "y"}}}).Draw(t, "selector")
	}
	f := facts{set: setWith(spec), copies: map[string]*unstructured.Unstructured{}, label: "label", now: now}
	names := []string{"a", "b", "c", "d", "e"}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 5, rapid.ID[string]).Draw(t, "clusters") {
		f.clusters = append(f.clusters, splitter.Cluster{
			Name: name, Labels: map[string]string{"zone": rapid.SampledFrom([]string{"one", "two"}).Draw(t, "of")},
			Ready:         rapid.SampledFrom([]metav1.ConditionStatus{"True", "True", "False", "Unknown"}).Draw(t, "ready"),
			Unschedulable: rapid.Bool().Draw(t, "cordoned"),
			EvictAfter:    rapid.SampledFrom([]time.Time{{}, {}, now.Add(-time.Hour), now, now.Add(time.Minute), now.Add(time.Hour)}).Draw(t, "evicts"),
		})
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 5, rapid.ID[string]).Draw(t, "copies") {
		f.copies[name] = copyWith(f.set, name, rapid.Int64Range(1, 2).Draw(t, "observed"), 1, rapid.Int64Range(0, 1).Draw(t, "updated"), rapid.Int64Range(0, 1).Draw(t, "ready"))
	}
	return f
}

// In random situations: each Deployment is kept or deleted, never both. Exactly the selected clusters have one that do not
// drain, apart from cordoned ones without one. The order of the input does not matter. After the plan is carried out, the
// next plan is the same and deletes nothing. The numbers of the status add up.
func TestPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t)
		p := f.plan()
		parts, surplus := map[string]part{}, map[string]bool{}
		for _, part := range p.parts {
			parts[part.cluster] = part
		}
		for _, obj := range p.surplus {
			surplus[clusterOf(obj)] = true
		}
		require.Len(t, parts, len(p.parts))
		for cluster := range f.copies {
			_, kept := parts[cluster]
			require.NotEqual(t, kept, surplus[cluster], cluster)
		}
		selector, err := f.read()
		require.Equal(t, err, p.invalid)
		soonest := time.Duration(0)
		for _, c := range f.clusters {
			part, chosen := parts[c.Name]
			has := f.copies[c.Name] != nil
			drains := !c.EvictAfter.IsZero() && !c.EvictAfter.After(now)
			if left := c.EvictAfter.Sub(now); !c.EvictAfter.IsZero() && left > 0 && (soonest == 0 || left < soonest) {
				soonest = left
			}
			want := !drains && has
			if err == nil {
				want = !drains && selector.Matches(labels.Set(c.Labels)) && (has || !c.Unschedulable)
			}
			require.Equal(t, want, chosen, c.Name)
			require.Equal(t, chosen && err == nil, part.desired != nil)
		}
		require.Equal(t, soonest, p.again)

		shuffled := f
		shuffled.clusters = rapid.Permutation(f.clusters).Draw(t, "order")
		require.Equal(t, p, shuffled.plan())

		next := f
		next.copies = map[string]*unstructured.Unstructured{}
		for i := range p.parts {
			part := &p.parts[i]
			if part.current == nil {
				part.current = part.desired
			}
			next.copies[part.cluster], part.state = part.current, applied
		}
		again := next.plan()
		require.Empty(t, again.surplus)
		require.Len(t, again.parts, len(p.parts))

		s := status(f.set, p, now)
		ready, unknown := s["readyClusters"].(int64), s["unknownClusters"].(int64)
		require.Equal(t, int64(len(p.parts)), s["desiredClusters"])
		require.LessOrEqual(t, ready+unknown, int64(len(p.parts)))
		c := s["conditions"].([]any)[0].(map[string]any)
		require.Equal(t, err == nil && len(p.parts) > 0 && ready == int64(len(p.parts)), c["status"] == "True")
		f.set.Object["status"] = s
		require.Equal(t, s, status(f.set, p, now.Add(time.Hour)), "nothing changes with time alone")
	})
}
