// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import "slices"

// hold replaces the field Hold of each claim by bounds. If d.Replicas is enough for all present
// replicas, and also for the held replicas together with the minima of the other claims, a held
// claim keeps exactly its present replicas. Otherwise the present replicas are only its upper bound.
// With Duplicate, a held claim keeps its present replicas, but at most d.Replicas.
func hold(d Demand, shares []Share) []Share {
	present, least, held := presence(shares)
	if !held {
		return shares
	}
	return pin(d, shares, present <= d.Replicas && least <= d.Replicas)
}

// presence returns three results: present is the number of present replicas within the bounds. least
// is the number of replicas that keeps all held replicas and meets the minima of the other claims.
// held reports whether any claim has Hold set.
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

// within returns n, or the upper bound if that is lower.
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
			// Leave negative numbers as they are: level rejects them.
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
