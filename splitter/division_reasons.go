// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"math"
	"math/bits"
	"slices"
)

// explain adds to the plan the limits that the claims of one level have hit.
func (v *division) explain(level []claim, got, shares []party, n int64) {
	quotas := v.quotas(shares, n)
	for i := range level {
		c, seats, share := &level[i], got[i].seats, shares[i].seats
		if seats < c.Min {
			v.because(c, LimitUnmet, c.Min-seats)
		}
		switch {
		case seats > share:
			v.because(c, LimitPresent, seats-share)
		case seats >= c.hi && quotas[i] > seats:
			if limit := upper(c.Share); limit != "" && c.hi == bound(c.Share) {
				v.because(c, limit, quotas[i]-seats)
			}
		case seats > 0 && seats == c.Min && quotas[i] < seats:
			v.because(c, LimitMin, seats-quotas[i])
		}
	}
	if short := n - sum(got, func(p *party) int64 { return p.seats }); short > 0 {
		for i := range level {
			if c := &level[i]; c.weight == 0 && c.hi > got[i].seats {
				v.because(c, LimitWeight, short)
			}
		}
	}
}

func (v *division) because(c *claim, limit Limit, by int64) {
	v.plan.Reasons = append(v.plan.Reasons, Reason{Name: c.Name, Limit: limit, By: by})
}

// upper returns LimitMax or LimitCapacity, depending on which of the two bounds of the share is
// lower. It returns an empty Limit if the share has neither bound.
func upper(s *Share) Limit {
	switch {
	case s.Capacity != nil && (s.Max == nil || *s.Capacity < *s.Max):
		return LimitCapacity
	case s.Max != nil:
		return LimitMax
	}
	return ""
}

// bound returns the lower of Max and Capacity of a share. It ignores the bounds of members.
func bound(s *Share) int64 {
	b := int64(math.MaxInt64)
	if s.Max != nil {
		b = *s.Max
	}
	if s.Capacity != nil {
		b = min(b, *s.Capacity)
	}
	return b
}

// quotas returns each party's exact share of n, rounded to the nearest integer. With a mode that
// fills clusters in order, the quota is the number of replicas left when the party's turn comes. With
// FewestSpread, only the parties with seats have a quota.
func (v *division) quotas(ps []party, n int64) []int64 {
	quotas := make([]int64, len(ps))
	if before := order(v.rule); before != nil {
		ranks := make([]int, len(ps))
		for i := range ranks {
			ranks[i] = i
		}
		slices.SortFunc(ranks, func(i, j int) int { return before(&ps[i], &ps[j]) })
		for _, i := range ranks {
			quotas[i] = n
			n = max(0, n-ps[i].hi)
		}
		return quotas
	}
	var weights int64
	used := func(p *party) bool { return v.rule != FewestSpread || p.seats > 0 }
	for i := range ps {
		if used(&ps[i]) {
			weights += ps[i].weight
		}
	}
	if weights == 0 {
		return quotas
	}
	for i := range ps {
		if !used(&ps[i]) {
			continue
		}
		h, l := bits.Mul64(uint64(ps[i].weight), uint64(n))
		q, r := bits.Div64(h, l, uint64(weights))
		if r >= uint64(weights)-r {
			q++
		}
		quotas[i] = int64(q)
	}
	return quotas
}
