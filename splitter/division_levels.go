// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// division is one call of Divide.
type division struct {
	Demand
	rule    Mode  // the mode of the present level
	budget  int64 // moves that are still allowed
	present bool  // whether any cluster has replicas now
	names   []string
	parties [2][]party // the buffers of kept and of shares, reused for each level
	plan    Plan
}

// claim is a Share with consistent bounds: its own, combined with those of its members.
type claim struct {
	*Share
	weight  int64
	lo, hi  int64 // the lower and the upper bound
	wish    int64 // the most that it claims by weight: hi, or lo if the weight is zero
	most    int64 // the most without moves: as wish, but present replicas stay if the weight is zero
	stays   int64 // present replicas; for a group, the sum over its members, each within its bounds
	least   int64 // for a group: the sum that the shares of its members must at least reach
	seats   int64 // for a group: the replicas that it gets
	tie     uint64
	members []claim
}

// level checks sibling shares and returns them as claims. asking is false below a group of weight
// zero: then the claims ask for no replicas beyond their minima.
func (v *division) level(shares []Share, asking bool) ([]claim, error) {
	level := make([]claim, len(shares))
	if v.names == nil {
		v.names = make([]string, 0, len(shares))
	}
	var weights int64
	for i := range shares {
		c := newClaim(&shares[i], v.UID)
		if c.Name == "" {
			return nil, fmt.Errorf("share %d: Name is empty", i)
		}
		if err := c.check(v.Mode); err != nil {
			return nil, err
		}
		if weights > math.MaxInt64-c.weight {
			return nil, fmt.Errorf("%s: Weight %d makes the sum of all weights more than %d", c.Name, c.weight, int64(math.MaxInt64))
		}
		weights += c.weight
		if c.Capacity != nil {
			c.hi = min(c.hi, *c.Capacity)
		}
		c.wish, c.most = c.hi, c.hi
		if !c.Group {
			v.names = append(v.names, c.Name)
			v.present = v.present || c.Present > 0
		} else if err := v.group(&c, asking && c.weight > 0); err != nil {
			return nil, err
		}
		c.settle(asking)
		level[i] = c
	}
	return level, siblings(level)
}

// newClaim returns a claim with the weight and the bounds of the share.
func newClaim(s *Share, uid types.UID) claim {
	c := claim{Share: s, weight: 1, lo: s.Min, hi: math.MaxInt64, stays: s.Present, tie: tie(uid, s.Name)}
	if s.Weight != nil {
		c.weight = *s.Weight
	}
	if s.Max != nil {
		c.hi = *s.Max
	}
	return c
}

// check returns an error if the fields of the share contradict each other or the mode.
func (c *claim) check(mode Mode) error {
	bounded := c.Min != 0 || c.Max != nil || c.Capacity != nil
	switch {
	case min(c.weight, c.Min, c.hi, c.Present) < 0 || c.Capacity != nil && *c.Capacity < 0:
		return fmt.Errorf("%s: Weight, Min, Max, Capacity or Present is below zero", c.Name)
	case c.Min > c.hi:
		return fmt.Errorf("%s: Min %d is above Max %d", c.Name, c.Min, c.hi)
	case c.Group && c.Present != 0:
		return fmt.Errorf("%s: Present of a group is that of its members, and must be zero", c.Name)
	case !c.Group && len(c.Members) > 0:
		return fmt.Errorf("%s: Members are only for a Group", c.Name)
	case c.Group && mode == Duplicate && bounded:
		return fmt.Errorf("%s: Min, Max and Capacity have no meaning for a group with Duplicate", c.Name)
	}
	return nil
}

// settle makes the bounds of a claim consistent. For a group, call the method group first: it adds
// the bounds of the members.
func (c *claim) settle(asking bool) {
	c.lo = min(c.lo, c.hi)
	c.least, c.wish, c.most = c.lo, max(c.wish, c.lo), max(c.most, c.lo)
	if c.weight == 0 || !asking {
		c.wish, c.most = c.lo, min(max(c.stays, c.lo), c.hi)
	}
}

// group adds the members of a region or zone to its claim.
func (v *division) group(c *claim, asking bool) (err error) {
	if c.members, err = v.level(c.Members, asking); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	var lo, hi, wish, most, stays int64
	for _, m := range c.members {
		lo, hi, wish, most = plus(lo, m.lo), plus(hi, m.hi), plus(wish, m.wish), plus(most, m.most)
		stays = plus(stays, min(max(m.stays, m.lo), m.hi))
	}
	c.lo, c.hi, c.wish, c.most = max(c.lo, lo), min(c.hi, hi), min(c.wish, wish), min(c.most, most)
	c.stays = stays
	return nil
}

func siblings(level []claim) error {
	var names []string
	for _, c := range level {
		if c.Group {
			names = append(names, c.Name)
		}
	}
	return distinct(names)
}

// unique fails if two clusters have the same name.
func (v *division) unique() error { return distinct(v.names) }

func distinct(names []string) error {
	if !slices.IsSorted(names) {
		slices.Sort(names)
	}
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			return fmt.Errorf("%s: Name is there twice", names[i])
		}
	}
	return nil
}

// plus returns a + b, or the greatest int64 on overflow. Neither may be negative.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// exceed reports whether the sum of count over all elements is greater than n. It cannot overflow.
func exceed[T any](n int64, of []T, count func(*T) int64) bool {
	for i := range of {
		c := count(&of[i])
		if c > n {
			return true
		}
		n -= c
	}
	return false
}

// divide divides n replicas over the claims of one level, then each group's replicas over the level
// below. It places at least placed of the n replicas. The shares toward which it moves replicas add
// up to at least shared. To reach these two numbers, it also gives replicas to claims of weight
// zero.
func (v *division) divide(level []claim, n, placed, shared int64) {
	v.rule = v.Mode
	if exceed(n, level, func(c *claim) int64 { return c.lo }) {
		if v.rule == FewestSpread {
			v.rule = Spread // each place that has a minimum is in use
		}
		// Too few replicas for the minima: divide them in proportion, with the minima as upper
		// bounds.
		for i := range level {
			c := &level[i]
			c.weight, c.hi, c.wish, c.most, c.lo, c.stays = max(c.weight, 1), c.lo, c.lo, c.lo, 0, 0
		}
	}
	kept, shares := v.kept(level, n, placed), v.shares(level, n, shared)
	moved, due := v.move(kept, shares)
	v.plan.Moved += moved
	v.plan.Due += due
	v.budget -= moved
	v.explain(level, kept, shares, n)
	var groups []*claim
	for i := range level {
		c, seats := &level[i], kept[i].seats
		if c.Group {
			c.seats, c.least = seats, max(c.least, shares[i].seats) // v.divide reuses the buffers of kept and shares
			groups = append(groups, c)
			continue
		}
		v.plan.Shards = append(v.plan.Shards, Assignment{Cluster: c.Name, Replicas: seats})
		v.plan.Unplaced -= seats
	}
	// The groups share one budget of moves and use it up in order of their names, so that the
	// result does not depend on the order of the input.
	slices.SortFunc(groups, func(a, b *claim) int { return cmp.Compare(a.Name, b.Name) })
	for _, g := range groups {
		v.divide(g.members, g.seats, g.seats, g.least)
	}
}

// kept returns the division that makes no moves, except those that the bounds force.
func (v *division) kept(level []claim, n, least int64) []party {
	ps := v.take(0, level)
	for i := range level {
		c := &level[i]
		ps[i].seats = min(max(c.stays, c.lo), c.hi)
	}
	if exceed(n, ps, func(p *party) int64 { return p.seats }) {
		for i := range ps {
			ps[i].lo, ps[i].hi = level[i].lo, ps[i].seats
		}
		apportion(v.rule, n, ps)
		return ps
	}
	for i := range ps {
		ps[i].lo, ps[i].hi = ps[i].seats, level[i].most
	}
	beyond(v.rule, n, least, level, ps)
	return ps
}

// shares returns the division that would result if no replicas were present.
func (v *division) shares(level []claim, n, least int64) []party {
	if !v.present {
		return v.parties[0] // without present replicas, kept has already computed the same result in this buffer
	}
	ps := v.take(1, level)
	for i := range ps {
		ps[i].lo, ps[i].hi = level[i].lo, level[i].wish
	}
	beyond(v.rule, n, least, level, ps)
	return ps
}

// beyond apportions at most n seats. If the upper bounds of the parties add up to n or less, each
// party gets its upper bound. If that places fewer than least seats, beyond apportions more, up to
// least in all, within the upper bounds of the claims.
func beyond(mode Mode, n, least int64, level []claim, ps []party) {
	if !exceed(n, ps, func(p *party) int64 { return p.hi }) {
		n = min(n, max(least, sum(ps, func(p *party) int64 { return p.hi })))
		for i := range ps {
			ps[i].lo, ps[i].hi = ps[i].hi, level[i].hi
		}
	}
	apportion(mode, n, ps)
}

// take returns a party for each claim, in a reused buffer.
func (v *division) take(buffer int, level []claim) []party {
	ps := slices.Grow(v.parties[buffer][:0], len(level))[:len(level)]
	v.parties[buffer] = ps
	for i := range level {
		ps[i] = party{name: level[i].Name, weight: level[i].weight, tie: level[i].tie}
	}
	return ps
}

// move changes kept in the direction of shares, as far as the budget of moves allows. The rule of
// the mode selects the claims that replicas leave, and the claims to which they go. move returns
// how many replicas it has moved, and how many more would have to move to reach shares.
func (v *division) move(kept, shares []party) (moved, due int64) {
	var over, under int64
	for i := range kept {
		over = plus(over, max(0, kept[i].seats-shares[i].seats))
		under = plus(under, max(0, shares[i].seats-kept[i].seats))
	}
	total := min(over, under)
	moved = min(total, v.budget)
	if moved == 0 {
		return 0, total
	}
	from, to := make([]party, 0, len(kept)), make([]party, 0, len(kept))
	for i, k := range kept {
		share := shares[i].seats
		k.index = i
		switch {
		case k.seats > share:
			k.lo, k.hi = share, k.seats
			from = append(from, k)
		case k.seats < share:
			k.lo, k.hi = k.seats, share
			to = append(to, k)
		}
	}
	apportion(v.rule, sum(from, func(p *party) int64 { return p.hi })-moved, from)
	apportion(v.rule, sum(to, func(p *party) int64 { return p.lo })+moved, to)
	for _, p := range slices.Concat(from, to) {
		kept[p.index].seats = p.seats
	}
	return moved, total - moved
}

func (v *division) duplicate(level []claim) {
	for i := range level {
		c := &level[i]
		if c.Group {
			v.duplicate(c.members)
			continue
		}
		n := min(max(v.Replicas, c.lo), c.hi)
		switch {
		case c.weight == 0:
			n = c.lo
		case n < v.Replicas:
			v.plan.Unplaced = plus(v.plan.Unplaced, v.Replicas-n)
			v.because(c, upper(c.Share), v.Replicas-n)
		case n > v.Replicas:
			v.because(c, LimitMin, n-v.Replicas)
		}
		if n < c.Min {
			v.because(c, LimitUnmet, c.Min-n)
		}
		v.plan.Shards = append(v.plan.Shards, Assignment{Cluster: c.Name, Replicas: n})
	}
}
