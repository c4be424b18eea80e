// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// limits are the bounds of each sample.
type limits struct {
	budget  int // the least number of available replicas
	most    int // the greatest number of pods
	joining int // added to most while a cluster joins
}

// demand has the numbers of replicas at one moment on which the limits depend.
type demand struct {
	desired        int // spec.replicas of the workload
	needed, enough int // for the requests: see traffic.needed
	wanted         int // by the autoscalers of all clusters together
}

// next computes the limits of the next sample.
//
// The budget is the desired replicas minus maxUnavailable. For it, the desired replicas are at least enough and at most
// needed, so that the budget depends on the load, and not only on writes of the splitter. A raised budget takes effect when
// that many replicas are available for the first time: until then the new replicas start. If a cluster is lost, the budget
// falls to the available replicas of the others.
//
// The limit of pods is maxSurge plus the greater of desired and wanted: an autoscaler adds replicas before spec.replicas of
// the workload has them. A lowered limit takes effect when the pods have come down to it.
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

// judge returns the limits that a sample violates.
func (l *limits) judge(available, present int) (wrong []string) {
	if available < l.budget {
		wrong = append(wrong, fmt.Sprintf("%d replicas are available, of at least %d", available, l.budget))
	}
	if present > l.most {
		wrong = append(wrong, fmt.Sprintf("%d pods run, of at most %d", present, l.most))
	}
	return wrong
}
