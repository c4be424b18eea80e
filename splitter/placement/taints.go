// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Tolerate returns the clusters with the States that they have for a policy with these tolerations. A
// taint NoSchedule or NoExecute that is not tolerated forever makes a cluster Holding. A taint
// NoExecute makes it Draining when TolerationSeconds have passed since TimeAdded, at once if it is not
// tolerated. A taint without TimeAdded counts as added now. again is the time until the next State
// changes; zero means that no such change is due. It is pure.
func Tolerate(tolerations []v1alpha1.Toleration, clusters []splitter.Cluster, now time.Time) (list []splitter.Cluster, again time.Duration) {
	if !slices.ContainsFunc(clusters, func(c splitter.Cluster) bool { return len(c.Taints) > 0 }) {
		return clusters, 0
	}
	list = slices.Clone(clusters)
	for i := range list {
		c := &list[i]
		if repels(tolerations, *c) && c.State != splitter.Draining {
			c.State = splitter.Holding
		}
		for _, t := range c.Taints {
			rest, drains := untilDrain(tolerations, t, now)
			switch {
			case drains && rest <= 0:
				c.State = splitter.Draining
			case drains:
				again = loop.Sooner(again, rest)
			}
		}
	}
	return list, again
}

// repels reports whether a cluster has a taint that keeps new objects and replicas of a policy away.
func repels(tolerations []v1alpha1.Toleration, c splitter.Cluster) bool {
	return slices.ContainsFunc(c.Taints, func(t syncerv1alpha1.Taint) bool {
		_, drains := untilDrain(tolerations, t, time.Time{})
		return drains || t.Effect == corev1.TaintEffectNoSchedule && !tolerated(tolerations, t)
	})
}

// avoids reports whether a cluster has a taint PreferNoSchedule that is not tolerated.
func avoids(tolerations []v1alpha1.Toleration, c splitter.Cluster) bool {
	return slices.ContainsFunc(c.Taints, func(t syncerv1alpha1.Taint) bool {
		return t.Effect == corev1.TaintEffectPreferNoSchedule && !tolerated(tolerations, t)
	})
}

func tolerated(tolerations []v1alpha1.Toleration, taint syncerv1alpha1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t v1alpha1.Toleration) bool { return tolerates(t, taint) })
}

// untilDrain returns the time from now until a taint drains its cluster; zero or less means now. drains is false if the
// effect of the taint is not NoExecute, or if the taint is tolerated forever.
func untilDrain(tolerations []v1alpha1.Toleration, taint syncerv1alpha1.Taint, now time.Time) (rest time.Duration, drains bool) {
	if taint.Effect != corev1.TaintEffectNoExecute {
		return 0, false
	}
	var longest time.Duration
	for _, t := range tolerations {
		switch {
		case !tolerates(t, taint):
		case t.TolerationSeconds == nil:
			return 0, false
		default:
			longest = max(longest, seconds(*t.TolerationSeconds))
		}
	}
	if taint.TimeAdded == nil {
		return longest, true
	}
	return taint.TimeAdded.Add(longest).Sub(now), true
}

// seconds converts seconds to a duration, limited to the range from zero to a century so that it cannot overflow.
func seconds(n int64) time.Duration {
	const century = 100 * 365 * 24 * 3600
	return time.Duration(max(0, min(n, century))) * time.Second
}

// tolerates reports whether a toleration matches a taint by key, value and effect, with the rules of Kubernetes. It ignores
// TolerationSeconds.
func tolerates(t v1alpha1.Toleration, taint syncerv1alpha1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case corev1.TolerationOpEqual, "":
		return t.Value == taint.Value
	default:
		return false
	}
}
