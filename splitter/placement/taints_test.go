// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var (
	taintKeys    = []string{"", "gpu", "maintenance"}
	taintValues  = []string{"", "a", "b"}
	taintEffects = []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	operators    = []corev1.TolerationOperator{"", corev1.TolerationOpExists, corev1.TolerationOpEqual, "Unknown"}
)

// The three tables list the effects, keys and values of taints that each part of a toleration matches. A toleration matches
// a taint if all its parts do. The test compares all combinations.
func TestTolerates(t *testing.T) {
	keys := map[string][]string{"": {"gpu", "maintenance"}, "gpu": {"gpu"}, "maintenance": {"maintenance"}}
	type match struct {
		operator corev1.TolerationOperator
		value    string
	}
	values := map[match][]string{
		{"", ""}: {""}, {"", "a"}: {"a"}, {"", "b"}: {"b"},
		{"Equal", ""}: {""}, {"Equal", "a"}: {"a"}, {"Equal", "b"}: {"b"},
		{"Exists", ""}: taintValues, {"Exists", "a"}: taintValues, {"Exists", "b"}: taintValues,
		{"Unknown", ""}: nil, {"Unknown", "a"}: nil, {"Unknown", "b"}: nil,
	}
	effects := map[corev1.TaintEffect][]corev1.TaintEffect{
		"": {"NoSchedule", "PreferNoSchedule", "NoExecute"}, "NoSchedule": {"NoSchedule"}, "PreferNoSchedule": {"PreferNoSchedule"}, "NoExecute": {"NoExecute"},
	}
	require.Len(t, keys, len(taintKeys))
	require.Len(t, values, len(operators)*len(taintValues))
	require.Len(t, effects, len(taintEffects))
	for key, ofKey := range keys {
		for by, ofValue := range values {
			for effect, ofEffect := range effects {
				for _, seconds := range []*int64{nil, new(int64(0)), new(int64(7))} {
					toleration := v1alpha1.Toleration{Key: key, Operator: by.operator, Value: by.value, Effect: effect, TolerationSeconds: seconds}
					for _, taint := range everyTaint() {
						want := slices.Contains(ofKey, taint.Key) && slices.Contains(ofValue, taint.Value) && slices.Contains(ofEffect, taint.Effect)
						require.Equal(t, want, tolerates(toleration, taint), "%+v %+v", toleration, taint)
					}
				}
			}
		}
	}
}

func everyTaint() (list []syncerv1alpha1.Taint) {
	for _, key := range taintKeys[1:] {
		for _, value := range taintValues {
			for _, effect := range taintEffects[1:] {
				list = append(list, syncerv1alpha1.Taint{Key: key, Value: value, Effect: effect})
			}
		}
	}
	return list
}

func TestTolerate(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	taint := func(effect corev1.TaintEffect, added time.Duration) syncerv1alpha1.Taint {
		return syncerv1alpha1.Taint{Key: "k", Value: "v", Effect: effect, TimeAdded: &metav1.Time{Time: now.Add(added)}}
	}
	schedule, prefer, execute := taint(corev1.TaintEffectNoSchedule, 0), taint(corev1.TaintEffectPreferNoSchedule, 0), taint(corev1.TaintEffectNoExecute, 0)
	undated := execute
	undated.TimeAdded = nil
	forever := v1alpha1.Toleration{Key: "k", Operator: corev1.TolerationOpExists}
	lasts := func(n int64) v1alpha1.Toleration {
		return v1alpha1.Toleration{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &n}
	}
	for name, test := range map[string]struct {
		taint       syncerv1alpha1.Taint
		tolerations []v1alpha1.Toleration
		is, want    splitter.State
		again       time.Duration
		avoided     bool
	}{
		"NoSchedule":                             {taint: schedule, want: splitter.Holding},
		"NoSchedule, tolerated":                  {taint: schedule, tolerations: []v1alpha1.Toleration{forever}, want: splitter.Placeable},
		"NoSchedule, NoExecute is tolerated":     {taint: schedule, tolerations: []v1alpha1.Toleration{lasts(60)}, want: splitter.Holding},
		"NoSchedule on a cluster that drains":    {taint: schedule, is: splitter.Draining, want: splitter.Draining},
		"PreferNoSchedule":                       {taint: prefer, want: splitter.Placeable, avoided: true},
		"PreferNoSchedule, tolerated":            {taint: prefer, tolerations: []v1alpha1.Toleration{forever}, want: splitter.Placeable},
		"PreferNoSchedule, on a Holding cluster": {taint: prefer, is: splitter.Holding, want: splitter.Holding, avoided: true},
		"NoExecute":                              {taint: execute, want: splitter.Draining},
		"NoExecute, without a time":              {taint: undated, want: splitter.Draining},
		"NoExecute, in the future":               {taint: taint(corev1.TaintEffectNoExecute, time.Hour), want: splitter.Holding, again: time.Hour},
		"NoExecute, tolerated":                   {taint: execute, tolerations: []v1alpha1.Toleration{forever}, want: splitter.Placeable},
		"NoExecute, for a minute":                {taint: execute, tolerations: []v1alpha1.Toleration{lasts(60)}, want: splitter.Holding, again: time.Minute},
		"NoExecute, for a minute, without time":  {taint: undated, tolerations: []v1alpha1.Toleration{lasts(60)}, want: splitter.Holding, again: time.Minute},
		"NoExecute, a minute is over":            {taint: taint(corev1.TaintEffectNoExecute, -time.Minute), tolerations: []v1alpha1.Toleration{lasts(60)}, want: splitter.Draining},
		"NoExecute, for no time":                 {taint: execute, tolerations: []v1alpha1.Toleration{lasts(0)}, want: splitter.Draining},
		"NoExecute, for less than no time":       {taint: execute, tolerations: []v1alpha1.Toleration{lasts(-1 << 63)}, want: splitter.Draining},
		"NoExecute, for very long":               {taint: execute, tolerations: []v1alpha1.Toleration{lasts(1<<63 - 1)}, want: splitter.Holding, again: seconds(1<<63 - 1)},
		"NoExecute, the longest counts":          {taint: execute, tolerations: []v1alpha1.Toleration{lasts(60), lasts(90), lasts(30)}, want: splitter.Holding, again: 90 * time.Second},
		"NoExecute, forever is the longest":      {taint: execute, tolerations: []v1alpha1.Toleration{lasts(60), forever}, want: splitter.Placeable},
	} {
		t.Run(name, func(t *testing.T) {
			if test.is == "" {
				test.is = splitter.Placeable
			}
			clusters := []splitter.Cluster{{Name: "plain", State: splitter.Placeable}, {Name: "tainted", State: test.is, Taints: []syncerv1alpha1.Taint{test.taint}}}
			list, again := Tolerate(test.tolerations, clusters, now)
			require.Equal(t, splitter.Placeable, list[0].State)
			require.Equal(t, test.want, list[1].State)
			require.Equal(t, test.again, again)
			require.Equal(t, test.avoided, avoids(test.tolerations, list[1]))
			require.Equal(t, test.is, clusters[1].State, "the argument is unchanged")
		})
	}
}

func drawTaints(t *rapid.T, now time.Time) (list []syncerv1alpha1.Taint) {
	for range rapid.IntRange(0, 2).Draw(t, "taints") {
		taint := syncerv1alpha1.Taint{
			Key: rapid.SampledFrom(taintKeys[1:]).Draw(t, "key"), Value: rapid.SampledFrom(taintValues).Draw(t, "value"), Effect: rapid.SampledFrom(taintEffects[1:]).Draw(t, "effect"),
		}
		if rapid.Bool().Draw(t, "dated") {
			taint.TimeAdded = &metav1.Time{Time: now.Add(time.Duration(rapid.IntRange(-90, 90).Draw(t, "added")) * time.Second)}
		}
		list = append(list, taint)
	}
	return list
}

func drawTolerations(t *rapid.T) (list []v1alpha1.Toleration) {
	for range rapid.IntRange(0, 2).Draw(t, "tolerations") {
		toleration := v1alpha1.Toleration{
			Key: rapid.SampledFrom(taintKeys).Draw(t, "key"), Operator: rapid.SampledFrom(operators).Draw(t, "operator"),
			Value: rapid.SampledFrom(taintValues).Draw(t, "value"), Effect: rapid.SampledFrom(taintEffects).Draw(t, "effect"),
		}
		if rapid.Bool().Draw(t, "ends") {
			toleration.TolerationSeconds = new(rapid.Int64Range(-1, 90).Draw(t, "seconds"))
		}
		list = append(list, toleration)
	}
	return list
}

// The States change at the time that Tolerate returns, and not before. As time passes, a cluster only goes from Holding
// to Draining. One more toleration never makes a State stricter. Place agrees: a cluster gets new replicas only if it is
// Placeable.
func TestTolerateOverTime(t *testing.T) {
	strict := map[splitter.State]int{splitter.Placeable: 0, splitter.Holding: 1, splitter.Draining: 2}
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		tolerations := drawTolerations(t)
		var clusters []splitter.Cluster
		for _, name := range []string{"a", "b"} {
			clusters = append(clusters, splitter.Cluster{Name: name, State: splitter.Placeable, Taints: drawTaints(t, now)})
		}
		for i := range clusters {
			for j := range clusters[i].Taints {
				if at := &clusters[i].Taints[j].TimeAdded; *at == nil {
					*at = &metav1.Time{Time: now} // as the Splitter sets it
				}
			}
		}
		more, _ := Tolerate(append(slices.Clone(tolerations), drawTolerations(t)...), clusters, now)
		list, again := Tolerate(tolerations, clusters, now)
		for i := range list {
			require.LessOrEqual(t, strict[more[i].State], strict[list[i].State])
			require.Equal(t, list[i].State == splitter.Placeable, !repels(tolerations, list[i]))
		}
		for step := 0; again > 0; step++ {
			require.Less(t, step, 5)
			before, _ := Tolerate(tolerations, clusters, now.Add(again-1))
			require.Equal(t, list, before)
			now = now.Add(again)
			var after []splitter.Cluster
			after, again = Tolerate(tolerations, clusters, now)
			for i := range after {
				require.LessOrEqual(t, strict[list[i].State], strict[after[i].State])
			}
			list = after
		}
		later, _ := Tolerate(tolerations, clusters, now.Add(24*time.Hour))
		require.Equal(t, list, later)
	})
}

// A cluster with a taint PreferNoSchedule joins an object only after all other clusters that may join. It replaces no
// cluster, and is the first that leaves if MaxClusters falls.
func TestChooseAvoidsClusters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, clusters := v1alpha1.PlacementPolicySpec{MaxClusters: rapid.Int32Range(1, 4).Draw(t, "most")}, []splitter.Cluster{}
		var present []string
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			c := splitter.Cluster{Name: name}
			if rapid.Bool().Draw(t, "avoided") {
				c.Taints = []syncerv1alpha1.Taint{{Key: "k", Effect: corev1.TaintEffectPreferNoSchedule}}
			}
			if rapid.Bool().Draw(t, "present") {
				present = append(present, name)
			}
			clusters = append(clusters, c)
		}
		chosen, err := Choose(spec, "uid", clusters, present)
		require.NoError(t, err)
		require.Len(t, chosen, int(spec.MaxClusters))
		for _, in := range clusters {
			for _, out := range clusters {
				if !slices.Contains(chosen, in.Name) || slices.Contains(chosen, out.Name) || slices.Contains(present, in.Name) != slices.Contains(present, out.Name) {
					continue
				}
				require.False(t, avoids(nil, in) && !avoids(nil, out), "%s instead of %s", in.Name, out.Name)
			}
		}
	})
}
