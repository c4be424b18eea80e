// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// limits are the numbers that no sample may pass.
type limits struct {
	budget  int // of available replicas, at least
	most    int // of pods, at most
	joining int // added to most while a cluster joins
}

// demand has the replicas of a moment that the limits depend on.
type demand struct {
	desired        int // by the workload
	needed, enough int // by the requests: see traffic.needed
	wanted         int // by the autoscalers of all clusters
}

// next computes the limits of the next sample.
//
// The budget is the desired replicas minus maxUnavailable. More desired replicas than the requests need do not count, and
// fewer than are enough count as enough: so the budget depends on the load, and not only on writes of the splitter. A raised
// budget counts once that many replicas are available for the first time: before, replicas are missing because they start.
// If a cluster has been lost, the budget falls to the replicas that the others have.
//
// The limit of pods is the desired replicas plus maxSurge, or the wanted ones: an autoscaler adds replicas before the
// workload has them. A lowered limit counts once the pods have come down to it.
func (l *limits) next(available, present int, d demand, lost bool) {
	if lost {
		l.budget = min(l.budget, available)
	}
	if budget := max(d.enough, min(d.needed, d.desired)) - maxUnavailable; budget < l.budget || available >= budget {
		l.budget = budget
	}
	if most := max(d.desired, d.wanted) + maxSurge + l.joining; most > l.most || present <= most {
		l.most = most
	}
}

// judge returns the limits that a sample passes.
func (l *limits) judge(available, present int) (wrong []string) {
	if available < l.budget {
		wrong = append(wrong, fmt.Sprintf("%d replicas are available, of at least %d", available, l.budget))
	}
	if present > l.most {
		wrong = append(wrong, fmt.Sprintf("%d pods run, of at most %d", present, l.most))
	}
	return wrong
}
