// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import "slices"

// hold turns Hold into bounds: what is present, neither more nor less, as far as there are replicas for it beside the
// minima of the others. If there are not, only what is present is an upper bound.
func hold(d Demand, shares []Share) []Share {
	present, least, held := presence(shares)
	if !held {
		return shares
	}
	return pin(d, shares, present <= d.Replicas && least <= d.Replicas)
}

// presence is what is present as far as bounds allow, what must be placed if all that is held stays, and whether anything
// is held.
func presence(shares []Share) (present, least int64, held bool) {
	for _, s := range shares {
		switch {
		case s.Group:
			p, l, h := presence(s.Members)
			present, least, held = plus(present, p), plus(least, max(l, s.Min)), held || h
		case s.Hold:
			stays := s.within(s.Present)
			present, least, held = plus(present, stays), plus(least, stays), true
		default:
			present, least = plus(present, s.within(s.Present)), plus(least, s.Min)
		}
	}
	return present, least, held
}

// within is n or the upper bound.
func (s Share) within(n int64) int64 {
	if s.Max != nil {
		n = min(n, *s.Max)
	}
	if s.Capacity != nil {
		n = min(n, *s.Capacity)
	}
	return n
}

func pin(d Demand, shares []Share, all bool) []Share {
	shares = slices.Clone(shares)
	for i := range shares {
		s := &shares[i]
		switch {
		case s.Group:
			s.Members = pin(d, s.Members, all)
		case !s.Hold || s.Present < 0 || s.within(0) < 0:
			// What is below zero is for others to complain about.
		case d.Mode == Duplicate:
			stays := min(s.within(s.Present), d.Replicas)
			s.Weight, s.Min, s.Max = new(int64(0)), stays, &stays
		default:
			stays := s.within(s.Present)
			s.Max, s.Min = &stays, min(s.Min, stays)
			if all {
				s.Min = stays
			}
		}
	}
	return shares
}
