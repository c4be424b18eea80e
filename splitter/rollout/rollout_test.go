// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/splitter/rollout"
)

// at returns a cluster that wants n replicas, has them, and has the given number of available pods.
func at(name string, n, available int64, edit ...func(*rollout.Cluster)) rollout.Cluster {
	c := rollout.Cluster{Name: name, Want: n, Spec: n, Pods: n, Available: available}
	for _, e := range edit {
		e(&c)
	}
	return c
}

func old(c *rollout.Cluster)               { c.Outdated = true }
func gone(c *rollout.Cluster)              { c.Unreachable = true }
func leaves(c *rollout.Cluster)            { c.Gone = true }
func unobserved(c *rollout.Cluster)        { c.Unobserved = true }
func unreported(c *rollout.Cluster)        { c.Unreported, c.Pods, c.Available = true, 0, 0 }
func has(n int64) func(*rollout.Cluster)   { return func(c *rollout.Cluster) { c.Pods = n } }
func wants(n int64) func(*rollout.Cluster) { return func(c *rollout.Cluster) { c.Want = n } }
func may(unavailable, surge int64) func(*rollout.Cluster) {
	return func(c *rollout.Cluster) { c.Outdated, c.Unavailable, c.Surge = true, unavailable, surge }
}
func prior(unavailable, surge, fewer int64) func(*rollout.Cluster) {
	return func(c *rollout.Cluster) {
		c.Outdated, c.Unobserved, c.Prior = true, true, rollout.Prior{Unavailable: unavailable, Surge: surge, Fewer: fewer}
	}
}

// keep and roll return steps.
func keep(name string, n int64) rollout.Step { return rollout.Step{Name: name, Replicas: n} }
func roll(name string, n, unavailable, surge int64) rollout.Step {
	return rollout.Step{Name: name, Replicas: n, Roll: true, Unavailable: unavailable, Surge: surge}
}

func TestPlan(t *testing.T) {
	for name, test := range map[string]struct {
		budget   rollout.Budget
		options  rollout.Options
		clusters []rollout.Cluster
		want     []rollout.Step
	}{
		"all clusters share the budget by their replicas": {
			rollout.Budget{Replicas: 12, MaxUnavailable: 3, MaxSurge: 1}, rollout.Options{},
			[]rollout.Cluster{at("a", 4, 4, old), at("b", 8, 8, old)},
			[]rollout.Step{roll("a", 4, 1, 1), roll("b", 8, 2, 0)},
		},
		"a cluster without a part waits": {
			rollout.Budget{Replicas: 3, MaxUnavailable: 1}, rollout.Options{},
			[]rollout.Cluster{at("a", 1, 1, old), at("b", 1, 1, old), at("c", 1, 1, old)},
			[]rollout.Step{roll("a", 1, 1, 0), keep("b", 1), keep("c", 1)},
		},
		"the order": {
			rollout.Budget{Replicas: 3, MaxUnavailable: 1}, rollout.Options{Order: []string{"c", "b"}},
			[]rollout.Cluster{at("a", 1, 1, old), at("b", 1, 1, old), at("c", 1, 1, old)},
			[]rollout.Step{keep("a", 1), keep("b", 1), roll("c", 1, 1, 0)},
		},
		"pods that are unavailable elsewhere use up the budget": {
			rollout.Budget{Replicas: 20, MaxUnavailable: 5}, rollout.Options{},
			[]rollout.Cluster{at("a", 10, 10, old), at("b", 10, 5)},
			[]rollout.Step{keep("a", 10), keep("b", 10)},
		},
		"pods of an unreachable cluster are unavailable": {
			rollout.Budget{Replicas: 20, MaxUnavailable: 10}, rollout.Options{},
			[]rollout.Cluster{at("a", 10, 10, old), at("b", 10, 10, old, gone)},
			[]rollout.Step{keep("a", 10), keep("b", 10)},
		},
		"unavailable pods of a cluster do not delay its own rollout": {
			rollout.Budget{Replicas: 20, MaxUnavailable: 5}, rollout.Options{Clusters: 1},
			[]rollout.Cluster{at("a", 10, 10, old), at("b", 10, 3, old)},
			[]rollout.Step{keep("a", 10), roll("b", 10, 5, 0)},
		},
		"unused parts are taken back, from the last cluster first": {
			rollout.Budget{Replicas: 30, MaxUnavailable: 5}, rollout.Options{},
			[]rollout.Cluster{at("a", 10, 10, may(2, 0)), at("b", 10, 10, may(3, 0)), at("c", 10, 6)},
			[]rollout.Step{roll("a", 10, 1, 0), keep("b", 10), keep("c", 10)},
		},
		"a part that is taken back counts until the cluster has observed its spec": {
			rollout.Budget{Replicas: 20, MaxUnavailable: 3}, rollout.Options{},
			[]rollout.Cluster{at("a", 10, 10, prior(3, 0, 0)), at("b", 10, 10, old)},
			[]rollout.Step{keep("a", 10), keep("b", 10)},
		},
		"a surge that is taken back counts until the cluster has observed its spec": {
			rollout.Budget{Replicas: 20, MaxSurge: 3}, rollout.Options{},
			[]rollout.Cluster{at("a", 10, 10, prior(0, 3, 0)), at("b", 10, 10, old)},
			[]rollout.Step{keep("a", 10), keep("b", 10)},
		},
		"surge is taken back": {
			rollout.Budget{Replicas: 20, MaxUnavailable: 2, MaxSurge: 1}, rollout.Options{},
			[]rollout.Cluster{at("a", 10, 10, may(0, 3)), at("b", 10, 10)},
			[]rollout.Step{roll("a", 10, 0, 1), keep("b", 10)},
		},
		"surge that may be in use already stays, if available pods may leave with it": {
			rollout.Budget{Replicas: 20, MaxSurge: 1}, rollout.Options{},
			[]rollout.Cluster{at("a", 10, 10, may(0, 3)), at("b", 10, 10)},
			[]rollout.Step{roll("a", 10, 0, 3), keep("b", 10)},
		},
		"the last cluster gets the rest, if that doubles its part": {
			rollout.Budget{Replicas: 20, MaxUnavailable: 6}, rollout.Options{},
			[]rollout.Cluster{at("a", 10, 10, may(3, 0)), at("b", 10, 10)},
			[]rollout.Step{roll("a", 10, 6, 0), keep("b", 10)},
		},
		"a small rest is not worth a write": {
			rollout.Budget{Replicas: 20, MaxUnavailable: 6}, rollout.Options{},
			[]rollout.Cluster{at("a", 10, 10, may(4, 0)), at("b", 10, 10)},
			[]rollout.Step{roll("a", 10, 4, 0), keep("b", 10)},
		},
		"clusters that drain come last": {
			rollout.Budget{Replicas: 6, MaxSurge: 1}, rollout.Options{},
			[]rollout.Cluster{at("a", 2, 2, old, wants(0)), at("b", 4, 4, old)},
			[]rollout.Step{keep("a", 2), roll("b", 4, 0, 1)},
		},
		"replacements within the surge": {
			rollout.Budget{Replicas: 4, MaxSurge: 1}, rollout.Options{},
			[]rollout.Cluster{at("a", 4, 4, wants(0)), {Name: "b", Want: 4}},
			[]rollout.Step{keep("a", 4), keep("b", 1)},
		},
		"more replacements": {
			rollout.Budget{Replicas: 4, MaxSurge: 1, MoveSurge: 2}, rollout.Options{},
			[]rollout.Cluster{at("a", 4, 4, wants(0)), {Name: "b", Want: 4}},
			[]rollout.Step{keep("a", 4), keep("b", 3)},
		},
		"without a surge, pods leave first": {
			rollout.Budget{Replicas: 4, MaxUnavailable: 1}, rollout.Options{},
			[]rollout.Cluster{at("a", 4, 4, wants(0)), {Name: "b", Want: 4}},
			[]rollout.Step{keep("a", 3), keep("b", 0)},
		},
		"scaling up needs no surge": {
			rollout.Budget{Replicas: 9, MaxUnavailable: 1}, rollout.Options{},
			[]rollout.Cluster{at("a", 4, 4, wants(9))},
			[]rollout.Step{keep("a", 9)},
		},
		"pods that are not ready leave first": {
			rollout.Budget{Replicas: 8}, rollout.Options{},
			[]rollout.Cluster{at("a", 4, 2, wants(2)), at("b", 6, 6)},
			[]rollout.Step{keep("a", 2), keep("b", 6)},
		},
		"a pod that is ready may stay in place of an available one": {
			rollout.Budget{Replicas: 8}, rollout.Options{},
			[]rollout.Cluster{at("a", 4, 2, wants(2), func(c *rollout.Cluster) { c.Delayed = true }), at("b", 6, 6)},
			[]rollout.Step{keep("a", 4), keep("b", 6)},
		},
		"of two templates, any pod may leave": {
			rollout.Budget{Replicas: 8}, rollout.Options{},
			[]rollout.Cluster{at("a", 4, 2, wants(2), old), at("b", 6, 6)},
			[]rollout.Step{roll("a", 4, 1, 0), keep("b", 6)},
		},
		"all pods of a cluster that has not reported may be available": {
			rollout.Budget{Replicas: 4, MaxUnavailable: 1}, rollout.Options{},
			[]rollout.Cluster{at("a", 4, 0, unreported, wants(0)), at("b", 4, 2)},
			[]rollout.Step{keep("a", 4), keep("b", 4)},
		},
		"a cluster that never reports can be left": {
			rollout.Budget{Replicas: 4, MaxSurge: 1}, rollout.Options{},
			[]rollout.Cluster{at("a", 4, 0, unreported, wants(0)), at("b", 4, 4)},
			[]rollout.Step{keep("a", 0), keep("b", 4)},
		},
		"replacements do not wait for a cluster that never reports": {
			rollout.Budget{Replicas: 20, MaxSurge: 1}, rollout.Options{},
			[]rollout.Cluster{at("a", 10, 0, unreported, wants(0)), at("b", 10, 10, wants(20))},
			[]rollout.Step{keep("a", 10), keep("b", 20)},
		},
		"a cluster that is gone does not use up the surge": {
			rollout.Budget{Replicas: 20, MaxUnavailable: 5, MaxSurge: 5}, rollout.Options{},
			[]rollout.Cluster{at("a", 15, 15, wants(0), leaves, unobserved), at("b", 5, 5, wants(20))},
			[]rollout.Step{keep("a", 10), keep("b", 20)},
		},
		"an unobserved spec stays": {
			rollout.Budget{Replicas: 8, MaxUnavailable: 8, MaxSurge: 8}, rollout.Options{},
			[]rollout.Cluster{at("a", 4, 4, unobserved, wants(2)), at("b", 4, 4, unobserved, wants(6))},
			[]rollout.Step{keep("a", 4), keep("b", 4)},
		},
		"an unobserved cluster can be left": {
			rollout.Budget{Replicas: 4, MaxUnavailable: 1}, rollout.Options{},
			[]rollout.Cluster{at("a", 4, 4, unobserved, wants(0)), at("b", 4, 4)},
			[]rollout.Step{keep("a", 0), keep("b", 4)},
		},
		"if the budget is exceeded, no available pod leaves, not even one that may be lost anyway": {
			rollout.Budget{Replicas: 2, MaxSurge: 1}, rollout.Options{},
			[]rollout.Cluster{at("a", 4, 4, prior(4, 0, 0), wants(0)), {Name: "b", Want: 2}},
			[]rollout.Step{keep("a", 4), keep("b", 0)},
		},
		"pods that an earlier spec may still remove do not count": {
			rollout.Budget{Replicas: 12, MaxUnavailable: 1}, rollout.Options{},
			[]rollout.Cluster{at("a", 6, 6, prior(0, 0, 4)), at("b", 6, 6, old)},
			[]rollout.Step{keep("a", 6), keep("b", 6)},
		},
		"an unreachable cluster stays": {
			rollout.Budget{Replicas: 4, MaxUnavailable: 4}, rollout.Options{},
			[]rollout.Cluster{at("a", 4, 4, gone, wants(0)), at("b", 4, 4, gone, wants(6))},
			[]rollout.Step{keep("a", 4), keep("b", 4)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			steps, err := rollout.Plan(test.budget, test.options, test.clusters)
			require.NoError(t, err)
			require.Equal(t, test.want, steps)
		})
	}
}

// Until a cluster has observed its spec, all specs that it may still follow count.
func TestPriorTo(t *testing.T) {
	for name, test := range map[string]struct {
		cluster rollout.Cluster
		step    rollout.Step
		want    rollout.Prior
	}{
		"at rest, the earlier spec changes nothing": {at("a", 4, 4), keep("a", 2), rollout.Prior{}},
		"a new cluster has no earlier spec":         {rollout.Cluster{Name: "a", Want: 3}, keep("a", 3), rollout.Prior{}},
		"it may still create pods":                  {at("a", 4, 2, has(2)), keep("a", 2), rollout.Prior{Surge: 2}},
		"it may still remove pods":                  {at("a", 2, 4, has(4)), keep("a", 4), rollout.Prior{Unavailable: 2, Fewer: 2}},
		"it may still use a part":                   {at("a", 4, 4, may(2, 1)), keep("a", 4), rollout.Prior{Unavailable: 2, Surge: 1}},
		"with a larger part, it may remove surge":   {at("a", 4, 4, old), roll("a", 4, 0, 2), rollout.Prior{Fewer: 2}},
		"earlier specs add up":                      {at("a", 4, 4, prior(2, 1, 3)), roll("a", 5, 1, 0), rollout.Prior{Unavailable: 3, Fewer: 4}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, test.cluster.PriorTo(test.step)) })
	}
}

func TestPlanOfBadNumbers(t *testing.T) {
	for want, bad := range map[string]struct {
		budget   rollout.Budget
		options  rollout.Options
		clusters []rollout.Cluster
	}{
		"MaxSurge of Budget is -1":               {rollout.Budget{MaxSurge: -1}, rollout.Options{}, nil},
		"Replicas of Budget is 2147483648":       {rollout.Budget{Replicas: 1 << 31}, rollout.Options{}, nil},
		"Clusters of Options is -2":              {rollout.Budget{}, rollout.Options{Clusters: -2}, nil},
		"Available of cluster a is -1":           {rollout.Budget{}, rollout.Options{}, []rollout.Cluster{{Name: "a", Available: -1}}},
		"Prior.Surge of cluster a is 4294967296": {rollout.Budget{}, rollout.Options{}, []rollout.Cluster{{Name: "a", Prior: rollout.Prior{Surge: 1 << 32}}}},
		`two clusters have the Name "a"`:         {rollout.Budget{}, rollout.Options{}, []rollout.Cluster{{Name: "a"}, {Name: "a"}}},
		"a cluster has no Name":                  {rollout.Budget{}, rollout.Options{}, []rollout.Cluster{{}}},
	} {
		_, err := rollout.Plan(bad.budget, bad.options, bad.clusters)
		require.Error(t, err, want)
		require.True(t, strings.HasPrefix(err.Error(), "rollout: "+want), err)
	}
}
