// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

var version136 = v1alpha1.KubernetesVersion{Major: "1", Minor: "36", GitVersion: "v1.36.0"}

// caseOf is one combination of all that plan looks at.
type caseOf struct {
	stage     fanoutv1alpha1.Stage
	deleted   bool
	region    metav1.ConditionStatus // empty: no condition
	before    metav1.ConditionStatus // of Reachable
	outdated  bool                   // before is of an earlier generation
	occupancy occupancy
	last      string
}

func (c caseOf) observation() observation {
	cluster := &v1alpha1.ServiceCluster{}
	cluster.Generation = 7
	if c.stage != "" {
		cluster.Spec.Fanout = &fanoutv1alpha1.Fanout{Stage: c.stage}
	}
	if c.deleted {
		cluster.DeletionTimestamp = new(metav1.Now())
	}
	if c.region != "" {
		meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: bound, Status: c.region, Reason: "X", Message: "the region"})
	}
	if c.before != "" {
		generation := int64(7)
		if c.outdated {
			generation = 6
		}
		meta.SetStatusCondition(&cluster.Status.Conditions,
			metav1.Condition{Type: reachable, Status: c.before, Reason: "Before", Message: "before", ObservedGeneration: generation})
	}
	o := observation{cluster: cluster, occupancy: c.occupancy, now: time.Unix(1e9, 0), patience: 3}
	failed := errors.New("no")
	o.last = map[string]*result{
		"none": nil, "answered": {version: version136, reached: true}, "one failure": {err: failed, failures: 1},
		"one failure after an answer": {err: failed, failures: 1, reached: true}, "three failures": {err: failed, failures: 3, reached: true},
		"kubeconfig": {err: fmt.Errorf("%w: no", ErrKubeconfig), failures: 1, reached: true},
	}[c.last]
	return o
}

func allCases(yield func(caseOf) bool) {
	statuses := []metav1.ConditionStatus{"", metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
	for _, stage := range []fanoutv1alpha1.Stage{"", fanoutv1alpha1.StageConfigured, fanoutv1alpha1.StageRemoving} {
		for _, deleted := range []bool{false, true} {
			for _, region := range statuses {
				for _, before := range statuses {
					for _, outdated := range []bool{false, true} {
						for _, o := range []occupancy{free, held, contested, unseen} {
							for _, last := range []string{"none", "answered", "one failure", "one failure after an answer", "three failures", "kubeconfig"} {
								if !yield(caseOf{stage, deleted, region, before, outdated, o, last}) {
									return
								}
							}
						}
					}
				}
			}
		}
	}
}

func TestEveryPlan(t *testing.T) {
	t.Parallel()
	n := 0
	for c := range allCases {
		n++
		o := c.observation()
		s := plan(o)
		status := func(of string) metav1.ConditionStatus { return meta.FindStatusCondition(s.Conditions, of).Status }
		usable := c.stage == fanoutv1alpha1.StageConfigured && !c.deleted && c.region == metav1.ConditionTrue

		require.Equal(t, usable && status(reachable) == metav1.ConditionTrue, status(ready) == metav1.ConditionTrue, "%+v", c)
		require.Equal(t, c.region == metav1.ConditionTrue, s.Phase != "", "%+v", c)
		require.Equal(t, c.region == metav1.ConditionTrue, s.ObservedGeneration == 7, "%+v", c)
		if s.Phase != "" {
			require.Equal(t, status(ready) == metav1.ConditionTrue, s.Phase == v1alpha1.ServiceClusterReady, "%+v", c)
			require.Equal(t, c.deleted || c.stage == fanoutv1alpha1.StageRemoving, s.Phase == v1alpha1.ServiceClusterTerminating, "%+v", c)
		}
		if usable {
			inherits := c.before == metav1.ConditionTrue && !c.outdated
			answers := c.last == "answered" || c.last == "none" && inherits || c.last == "one failure" && inherits ||
				c.last == "one failure after an answer" && c.before == metav1.ConditionTrue
			require.Equal(t, answers, status(reachable) == metav1.ConditionTrue, "%+v", c)
		}
		if c.stage == "" {
			require.NotEqual(t, metav1.ConditionTrue, status(claimed), "%+v", c)
		}
		for _, condition := range s.Conditions {
			require.NotEmpty(t, condition.Message, "%+v", c)
			require.NotEmpty(t, condition.Reason, "%+v", c)
			require.EqualValues(t, 7, condition.ObservedGeneration, "%+v", c)
		}

		// The same observation after the write changes nothing, not even a time.
		for _, condition := range s.Conditions {
			meta.SetStatusCondition(&o.cluster.Status.Conditions, condition)
		}
		o.cluster.Status.KubernetesVersion = s.KubernetesVersion
		o.now = o.now.Add(time.Hour)
		require.Equal(t, s, plan(o), "%+v", c)
	}
	require.Equal(t, 3*2*4*4*2*4*6, n)
}

func TestReasonsOfReady(t *testing.T) {
	t.Parallel()
	configured := fanoutv1alpha1.StageConfigured
	for reason, c := range map[v1alpha1.ServiceClusterConditionReason]caseOf{
		v1alpha1.ServiceClusterReasonComplete:          {stage: configured, region: metav1.ConditionTrue, last: "answered"},
		v1alpha1.ServiceClusterReasonPending:           {stage: configured, region: metav1.ConditionTrue, last: "none"},
		v1alpha1.ServiceClusterReasonUnreachable:       {stage: configured, region: metav1.ConditionTrue, last: "three failures"},
		v1alpha1.ServiceClusterReasonKubeconfigInvalid: {stage: configured, region: metav1.ConditionTrue, last: "kubeconfig"},
		v1alpha1.ServiceClusterReasonRegionUnbound:     {stage: configured, region: metav1.ConditionFalse, last: "answered"},
		v1alpha1.ServiceClusterReasonRemoving:          {stage: configured, deleted: true, region: metav1.ConditionTrue, last: "answered"},
		v1alpha1.ServiceClusterReasonUnclaimed:         {region: metav1.ConditionTrue},
		v1alpha1.ServiceClusterReasonHeld:              {region: metav1.ConditionTrue, occupancy: held},
		v1alpha1.ServiceClusterReasonRivals:            {region: metav1.ConditionTrue, occupancy: contested},
		v1alpha1.ServiceClusterReasonPeerUnreachable:   {region: metav1.ConditionTrue, occupancy: unseen},
	} {
		require.EqualValues(t, reason, meta.FindStatusCondition(plan(c.observation()).Conditions, ready).Reason)
	}
}

func TestTheVersionStaysWhileTheClusterIsUnreachable(t *testing.T) {
	t.Parallel()
	o := caseOf{stage: fanoutv1alpha1.StageConfigured, region: metav1.ConditionTrue, last: "three failures"}.observation()
	o.cluster.Status.KubernetesVersion = version136
	require.Equal(t, version136, plan(o).KubernetesVersion)
}

func TestPausesBetweenProbes(t *testing.T) {
	t.Parallel()
	opts, err := Options{}.withDefaults()
	require.NoError(t, err)
	now := time.Unix(1e9, 0)
	var r result
	var pauses []string
	for range 8 {
		r = r.after(v1alpha1.KubernetesVersion{}, errors.New("no"), now, &opts)
		pauses = append(pauses, r.next.Sub(now).String())
	}
	require.Equal(t, []string{"1s", "2s", "4s", "8s", "16s", "32s", "1m0s", "1m0s"}, pauses)
	r = r.after(version136, nil, now, &opts)
	require.Equal(t, result{version: version136, reached: true, next: now.Add(30 * time.Second)}, r)
	require.True(t, r.after(v1alpha1.KubernetesVersion{}, errors.New("no"), now, &opts).reached)
}

// TestAReplacedStatusIsWrittenLessAndLess writes the same status again whenever the pause allows it, for an hour.
func TestAReplacedStatusIsWrittenLessAndLess(t *testing.T) {
	t.Parallel()
	h := &history{kept: map[string]remembered{}, wrote: map[string]repetition{}}
	begin := time.Unix(1e9, 0)
	s := plan(caseOf{stage: fanoutv1alpha1.StageConfigured, region: metav1.ConditionTrue, last: "answered"}.observation())
	writes := 0
	for now := begin; now.Sub(begin) < time.Hour; now = now.Add(time.Second) {
		s.Conditions[0].LastTransitionTime = metav1.NewTime(now)
		if h.pause("k", s, now) <= 0 {
			writes++
			h.written("k", s, now)
		}
	}
	require.LessOrEqual(t, writes, 22)
	other := plan(caseOf{stage: fanoutv1alpha1.StageConfigured, region: metav1.ConditionTrue, last: "three failures"}.observation())
	require.Zero(t, h.pause("k", other, begin.Add(time.Hour)), "another status is written at once")
	h.written("k", other, begin.Add(time.Hour))
	require.LessOrEqual(t, h.pause("k", s, begin.Add(time.Hour)), time.Duration(0))
}
