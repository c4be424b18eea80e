// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// disruptable is a cluster with pods that a disruption budget selects.
type disruptable struct {
	cluster string
	pods    int64 // desired
	missing int64 // not available, of the desired
	needs   bool  // pods may have to leave a node
	present bool  // the cluster has a part of the budget
	allowed int64 // the present allowance
	settled bool  // the cluster has observed the present allowance
}

// allowances divides an allowance of disruptions. The result has the next allowance of each cluster, and the clusters
// whose share is zero, both in the order of the argument, which is sorted by cluster.
//
// For each cluster, more than max(allowance, missing) pods are never unavailable through disruptions. The sum of these
// is at most total, or the missing pods alone exceed it and no cluster allows further disruptions. Also in between, as
// long as clusters observe allowances late, one is raised only after all others were lowered.
func allowances(total, turn int64, uid types.UID, all []disruptable) (next []int64, without []string, err error) {
	shares, err := allowanceShares(max(0, total), turn, uid, all)
	if err != nil {
		return nil, nil, err
	}
	for i, c := range all {
		if shares[i] == 0 && c.pods > 0 {
			without = append(without, c.cluster)
		}
	}
	return inSteps(all, allowMissing(max(0, total), all, shares)), without, nil
}

// allowanceShares returns the share of each cluster if no pods are missing. Each cluster gets one, the rest is divided by
// pods. If there are fewer than clusters, those that need one take turns.
func allowanceShares(total, turn int64, uid types.UID, all []disruptable) ([]int64, error) {
	shares := make([]int64, len(all))
	var claims []Share
	for _, c := range all {
		if c.pods > 0 {
			claims = append(claims, Share{Name: c.cluster, Weight: &c.pods, Min: 1, Max: &c.pods})
		}
	}
	if total < int64(len(claims)) {
		for _, i := range inTurn(total, turn, all) {
			shares[i] = 1
		}
		return shares, nil
	}
	plan, err := Divide(Demand{Replicas: total, UID: uid}, claims)
	if err != nil {
		return nil, fmt.Errorf("divide an allowance of disruptions: %w", err)
	}
	for i, c := range all {
		shares[i] = plan.Replicas(c.cluster)
	}
	return shares, nil
}

// inTurn returns the indices of the n clusters that have an allowance in this turn. If more than n clusters need one,
// they take turns. Otherwise all that need one have one. The rest goes to clusters that need none: first to those that
// have an allowance already, then to those with the most pods.
func inTurn(n, turn int64, all []disruptable) []int {
	var needing, others []int
	for i, c := range all {
		switch {
		case c.pods == 0:
		case c.needs:
			needing = append(needing, i)
		default:
			others = append(others, i)
		}
	}
	if count := int64(len(needing)); count > n {
		first := int(turn % count * (n % count) % count)
		return slices.Concat(needing[first:], needing[:first])[:n]
	}
	slices.SortStableFunc(others, func(a, b int) int {
		return cmp.Or(cmp.Compare(min(1, all[b].allowed), min(1, all[a].allowed)), cmp.Compare(all[b].pods, all[a].pods))
	})
	return append(needing, others...)[:n]
}

// allowMissing reduces shares so that together with the missing pods they are at most total. It reduces the greatest
// first. The share of a cluster that has more missing pods than its share stays, since it allows nothing.
func allowMissing(total int64, all []disruptable, shares []int64) []int64 {
	limited := func(level int64) (allowed []int64, sum int64) {
		allowed = make([]int64, len(all))
		for i, c := range all {
			allowed[i] = min(shares[i], max(level, c.missing))
			sum += max(allowed[i], c.missing)
		}
		return allowed, sum
	}
	low, high := int64(0), total // shares are at most total
	for low < high {
		middle := low + (high-low+1)/2
		if _, sum := limited(middle); sum <= total {
			low = middle
		} else {
			high = middle - 1
		}
	}
	allowed, sum := limited(low)
	for i, c := range all {
		if sum < total && allowed[i] == low && shares[i] > low && c.missing <= low {
			allowed[i]++
			sum++
		}
	}
	return allowed
}

// inSteps returns the next allowances on the way to those that are wanted: as long as one must be lowered, or a cluster
// has not observed its present one, none is raised. A cluster without a part of the budget allows all disruptions, so
// it gets one at once.
func inSteps(all []disruptable, wanted []int64) []int64 {
	lowering := false
	for i, c := range all {
		lowering = lowering || c.present && (!c.settled || c.allowed > wanted[i])
	}
	next := slices.Clone(wanted)
	for i, c := range all {
		if c.present && lowering {
			next[i] = min(c.allowed, wanted[i])
		} else if lowering {
			next[i] = 0
		}
	}
	return next
}
