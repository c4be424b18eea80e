// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"math/big"
	"slices"
	"strings"

	"github.com/atoll-dev/atoll/splitter"
)

// candidate is a cluster in the reference implementation, which gives seats one by one.
type candidate struct {
	splitter.Share
	weight, lo, hi, seats int64
	tie                   uint64
}

const unbounded = 1 << 40

func candidates(d splitter.Demand, shares []splitter.Share) []*candidate {
	var cs []*candidate
	for _, s := range shares {
		c := &candidate{Share: s, weight: 1, hi: unbounded, tie: splitter.Tie(d.UID, s.Name)}
		if s.Weight != nil {
			c.weight = *s.Weight
		}
		if s.Max != nil {
			c.hi = *s.Max
		}
		if s.Capacity != nil {
			c.hi = min(c.hi, *s.Capacity)
		}
		c.lo = min(s.Min, c.hi)
		cs = append(cs, c)
	}
	if total(cs, func(c *candidate) int64 { return c.lo }) > d.Replicas {
		for _, c := range cs {
			c.lo, c.hi, c.weight, c.Present = 0, c.lo, max(c.weight, 1), 0
		}
	}
	return cs
}

func total(cs []*candidate, of func(*candidate) int64) (n int64) {
	for _, c := range cs {
		n += of(c)
	}
	return n
}

// desiredShare returns the upper bound of the replicas that a cluster claims by weight.
func (c *candidate) desiredShare() int64 {
	if c.weight == 0 {
		return c.lo
	}
	return c.hi
}

// first reports whether the next seat of a comes before the next seat of b.
func first(mode splitter.Mode, a, b *candidate) bool {
	var keysA, keysB []int64
	flag := func(b bool) int64 {
		if b {
			return 1
		}
		return 0
	}
	switch mode {
	case splitter.Fill:
		keysA, keysB = []int64{a.weight}, []int64{b.weight}
	case splitter.Fewest:
		keysA, keysB = []int64{flag(a.weight > 0), flag(a.lo > 0), a.hi, a.weight}, []int64{flag(b.weight > 0), flag(b.lo > 0), b.hi, b.weight}
	default:
		wa, wb := max(a.weight, 1), max(b.weight, 1)
		keysA, keysB = []int64{flag(a.weight > 0), wa * (2*b.seats + 1)}, []int64{flag(b.weight > 0), wb * (2*a.seats + 1)}
	}
	if c := slices.Compare(keysA, keysB); c != 0 {
		return c > 0
	}
	if a.tie != b.tie {
		return a.tie < b.tie
	}
	return strings.Compare(a.Name, b.Name) < 0
}

// give gives n seats to the candidates, starting from their lower bounds.
func give(mode splitter.Mode, n int64, cs []*candidate) []int64 {
	for _, c := range cs {
		c.seats = c.lo
		n -= c.lo
	}
	if mode == splitter.FewestSpread {
		mode = splitter.Spread
		most := give(splitter.Fewest, n+total(cs, func(c *candidate) int64 { return c.lo }), cs)
		for i, c := range cs {
			if c.seats = c.lo; most[i] == c.lo {
				c.hi = c.lo
			}
		}
	}
	for ; n > 0; n-- {
		var best *candidate
		for _, c := range cs {
			if c.seats < c.hi && (best == nil || first(mode, c, best)) {
				best = c
			}
		}
		if best == nil {
			break
		}
		best.seats++
	}
	var got []int64
	for _, c := range cs {
		got = append(got, c.seats)
	}
	return got
}

// reference divides over clusters without regions or zones, seat by seat: it does not compute a
// divisor first.
func reference(d splitter.Demand, shares []splitter.Share) (result map[string]int64, moved, due int64) {
	ideal := candidates(d, shares)
	if least := total(candidates(splitter.Demand{Replicas: unbounded}, shares), func(c *candidate) int64 { return c.lo }); d.Mode == splitter.FewestSpread && least > d.Replicas {
		d.Mode = splitter.Spread // each cluster with a minimum is in use
	}
	for _, c := range ideal {
		c.hi = c.desiredShare()
	}
	want := give(d.Mode, d.Replicas, ideal)

	kept := candidates(d, shares)
	held := total(kept, func(c *candidate) int64 { return min(max(c.Present, c.lo), c.hi) })
	for _, c := range kept {
		here := min(max(c.Present, c.lo), c.hi)
		if d.Replicas < held {
			c.hi = here
		} else {
			c.hi = max(c.desiredShare(), here)
			c.lo = here
		}
	}
	have := give(d.Mode, d.Replicas, kept)

	var from, to []*candidate
	var over, under int64
	for i, c := range kept {
		switch {
		case have[i] > want[i]:
			c.lo, c.hi = want[i], have[i]
			from, over = append(from, c), over+have[i]-want[i]
		case have[i] < want[i]:
			c.lo, c.hi = have[i], want[i]
			to, under = append(to, c), under+want[i]-have[i]
		}
	}
	moved = min(over, under, d.Moves)
	give(d.Mode, total(from, func(c *candidate) int64 { return c.hi })-moved, from)
	give(d.Mode, total(to, func(c *candidate) int64 { return c.lo })+moved, to)
	result = map[string]int64{}
	for _, c := range kept {
		result[c.Name] = c.seats
	}
	return result, moved, min(over, under) - moved
}

// later reports whether the last seat of a has a lower quotient than the next seat of b. The
// quotient is weight / (2 * seats + 1), not rounded.
func later(a splitter.Share, seatsA int64, b splitter.Share, seatsB int64) bool {
	odd := func(n int64) *big.Int { return new(big.Int).Add(new(big.Int).Lsh(big.NewInt(n), 1), big.NewInt(1)) }
	held := new(big.Int).Mul(big.NewInt(*a.Weight), odd(seatsB))
	next := new(big.Int).Mul(big.NewInt(*b.Weight), odd(seatsA-1))
	return held.Cmp(next) < 0
}
