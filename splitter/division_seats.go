// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"cmp"
	"math/bits"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// party is one of those among whom seats are apportioned.
type party struct {
	name   string
	weight int64
	lo, hi int64
	tie    uint64
	index  int // the caller's
	seats  int64
}

// apportion gives n seats, no fewer than the lower bounds ask for and no more than the upper bounds allow. Whoever has no
// weight comes after all others.
//
// All methods give seats in an order in which each seat has its fixed place whoever else takes part. All that Divide
// promises follows from that.
func apportion(mode Mode, n int64, ps []party) {
	if !exceed(n, ps, func(p *party) int64 { return p.hi }) {
		for i := range ps {
			ps[i].seats = ps[i].hi
		}
		return
	}
	if before := order(mode); before != nil {
		fill(n, ps, before)
		return
	}
	if !slices.ContainsFunc(ps, func(p party) bool { return p.weight == 0 }) {
		webster(n, ps)
		return
	}
	var heavy, light []party
	for i, p := range ps {
		p.index = i
		if p.weight > 0 {
			heavy = append(heavy, p)
		} else {
			p.weight = 1
			light = append(light, p)
		}
	}
	rest := n - sum(light, func(p party) int64 { return p.lo })
	apportion(mode, rest, heavy)
	apportion(mode, n-sum(heavy, func(p party) int64 { return p.seats }), light)
	for _, p := range slices.Concat(heavy, light) {
		ps[p.index].seats = p.seats
	}
}

// order is the one in which a mode fills its clusters; nil: it does not.
func order(mode Mode) func(a, b *party) int {
	switch mode {
	case Fewest:
		return func(a, b *party) int {
			return cmp.Or(flag(b.weight > 0)-flag(a.weight > 0), flag(b.lo > 0)-flag(a.lo > 0), cmp.Compare(b.hi, a.hi),
				cmp.Compare(b.weight, a.weight), draw(a, b))
		}
	case Fill:
		return func(a, b *party) int { return cmp.Or(cmp.Compare(b.weight, a.weight), draw(a, b)) }
	}
	return nil
}

// fill gives seats to one after another.
func fill(n int64, ps []party, before func(a, b *party) int) {
	sorted := make([]*party, len(ps))
	for i := range ps {
		p := &ps[i]
		p.seats = p.lo
		n -= p.lo
		sorted[i] = p
	}
	slices.SortFunc(sorted, before)
	for _, p := range sorted {
		more := min(n, p.hi-p.lo)
		p.seats += more
		n -= more
	}
}

// webster gives seats by weight: the next one goes to whose weight / (2 * seats + 1) is the greatest. All weights are
// above zero, and n is between the sums of the bounds.
//
// It jumps to the divisor at which weight / divisor, not rounded, makes n within the bounds. Rounded that is at most half
// a seat off for each party; the seats that are missing or too many are given or taken one by one.
func webster(n int64, ps []party) {
	num, den := divisor(n, ps)
	missing := n
	for i := range ps {
		p := &ps[i]
		p.seats = rounded(p, num, den)
		missing -= p.seats // may wrap around, and back
	}
	switch {
	case missing > 0:
		give := newHeap(ps, func(p *party) bool { return p.seats < p.hi }, func(a, b *party) bool {
			return earlier(a, a.seats, b, b.seats)
		})
		for ; missing > 0; missing-- {
			p := give.top()
			p.seats++
			give.settle(p.seats < p.hi)
		}
	case missing < 0:
		take := newHeap(ps, func(p *party) bool { return p.seats > p.lo }, func(a, b *party) bool {
			return earlier(b, b.seats-1, a, a.seats-1)
		})
		for ; missing < 0; missing++ {
			p := take.top()
			p.seats--
			take.settle(p.seats > p.lo)
		}
	}
}

// earlier says whether seat i of a, counted from zero, is given before seat j of b.
func earlier(a *party, i int64, b *party, j int64) bool {
	if c := compare(a.weight, 2*uint64(j)+1, b.weight, 2*uint64(i)+1); c != 0 {
		return c > 0
	}
	return draw(a, b) < 0
}

// draw decides between equals.
func draw(a, b *party) int { return cmp.Or(cmp.Compare(a.tie, b.tie), cmp.Compare(a.name, b.name)) }

// compare compares a * x with b * y.
func compare(a int64, x uint64, b int64, y uint64) int {
	h1, l1 := bits.Mul64(uint64(a), x)
	h2, l2 := bits.Mul64(uint64(b), y)
	return cmp.Or(cmp.Compare(h1, h2), cmp.Compare(l1, l2))
}

// rounded is weight * num / den to the nearest, halves up, within the bounds.
func rounded(p *party, num, den int64) int64 {
	if compare(p.weight, uint64(num), p.hi, uint64(den)) >= 0 {
		return p.hi
	}
	if compare(p.weight, uint64(num), p.lo, uint64(den)) <= 0 {
		return p.lo
	}
	// Below hi, so that the quotient is an int64.
	h, l := bits.Mul64(uint64(p.weight), uint64(num))
	q, r := bits.Div64(h, l, uint64(den))
	if r >= uint64(den)-r {
		q++
	}
	return int64(q)
}

// divisor returns the fraction num / den for which weight * num / den, kept within the bounds, sums up to n.
func divisor(n int64, ps []party) (num, den int64) {
	var least, weights int64
	bounded := false
	for i := range ps {
		least += ps[i].lo
		weights += ps[i].weight
	}
	for i := range ps {
		p := &ps[i]
		if compare(p.weight, uint64(n), p.lo, uint64(weights)) < 0 || compare(p.weight, uint64(n), p.hi, uint64(weights)) > 0 {
			bounded = true
			break
		}
	}
	if !bounded {
		return n, weights
	}
	// The sum grows with the fraction, and is linear between those at which a party leaves its lower bound or meets its
	// upper one.
	type bend struct {
		at, weight int64 // at / weight
		up         bool
	}
	bends := make([]bend, 0, 2*len(ps))
	for i := range ps {
		if p := &ps[i]; p.lo < p.hi {
			bends = append(bends, bend{p.lo, p.weight, false}, bend{p.hi, p.weight, true})
		}
	}
	slices.SortFunc(bends, func(a, b bend) int {
		return cmp.Or(compare(a.at, uint64(b.weight), b.at, uint64(a.weight)), flag(a.up)-flag(b.up))
	})
	fixed, free := least, int64(0)
	for _, b := range bends {
		if compare(free, uint64(b.at), n-fixed, uint64(b.weight)) >= 0 {
			if free > 0 {
				return n - fixed, free
			}
			return b.at, b.weight
		}
		if b.up {
			fixed, free = fixed+b.at, free-b.weight
		} else {
			fixed, free = fixed-b.at, free+b.weight
		}
	}
	return n, 1 // not reached: n is below the sum of the upper bounds
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func sum(ps []party, of func(party) int64) (total int64) {
	for _, p := range ps {
		total = plus(total, of(p))
	}
	return total
}

// tie is the place of a name among equals: an own order for each UID.
func tie(uid types.UID, name string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, s := range [...]string{string(uid), "\x00", name} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	// FNV alone leaves names that differ in the last letter near each other.
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
