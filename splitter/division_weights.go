// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// party is one claim that takes part in an apportionment.
type party struct {
	name   string
	weight int64
	lo, hi int64
	tie    uint64
	index  int // the position in the caller's slice
	seats  int64
}

// apportion gives n seats to the parties within their bounds. If n is more than the upper bounds permit,
// each party gets its upper bound. Parties with weight zero come last.
//
// Every mode gives the seats in a fixed order: which of two parties gets a seat earlier does not depend on
// the remaining parties. The properties of Divide follow from this order.
func apportion(mode Mode, n int64, ps []party) {
	if !exceed(n, ps, func(p *party) int64 { return p.hi }) {
		for i := range ps {
			ps[i].seats = ps[i].hi
		}
		return
	}
	if mode == FewestSpread {
		fewest(n, ps)
		mode = Spread
	}
	if before := order(mode); before != nil {
		fill(n, ps, before)
		return
	}
	lightest := ps[0].weight
	for i := range ps {
		lightest = min(lightest, ps[i].weight)
	}
	if lightest > 0 {
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
	rest := n - sum(light, func(p *party) int64 { return p.lo })
	apportion(mode, rest, heavy)
	apportion(mode, n-sum(heavy, func(p *party) int64 { return p.seats }), light)
	for _, p := range slices.Concat(heavy, light) {
		ps[p.index].seats = p.seats
	}
}

// order returns the order in which a mode fills clusters. It returns nil for a mode that does not fill one
// cluster after another.
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

// fewest sets the upper bound of each party that Fewest does not use to its lower bound.
func fewest(n int64, ps []party) {
	used := slices.Clone(ps)
	fill(n, used, order(Fewest))
	for i := range ps {
		if used[i].seats == used[i].lo {
			ps[i].hi = ps[i].lo
		}
	}
}

// fill gives each party its lower bound. It gives the remaining seats to one party after another, each up to
// its upper bound, in the order that the function before defines.
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

// webster gives seats by weight: the next seat goes to the party with the greatest weight / (2 * seats + 1).
// All weights must be above zero, and n must be between the sums of the lower and the upper bounds.
//
// It first computes the divisor at which weight / divisor, unrounded and within the bounds, adds up to n.
// Rounding changes each party by at most half a seat; the loops below then give or take the difference seat
// by seat.
func webster(n int64, ps []party) {
	num, den := divisor(n, ps)
	missing := n
	for i := range ps {
		p := &ps[i]
		p.seats = rounded(p, num, den)
		missing -= p.seats // an overflow here is undone by later subtractions
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

// earlier reports whether seat i of a, counted from zero, is given before seat j of b.
func earlier(a *party, i int64, b *party, j int64) bool {
	if c := compare(a.weight, 2*uint64(j)+1, b.weight, 2*uint64(i)+1); c != 0 {
		return c > 0
	}
	return draw(a, b) < 0
}

// draw decides between equal claims: by the hash, then by name.
func draw(a, b *party) int { return cmp.Or(cmp.Compare(a.tie, b.tie), cmp.Compare(a.name, b.name)) }

// compare compares a * x with b * y.
func compare(a int64, x uint64, b int64, y uint64) int {
	h1, l1 := bits.Mul64(uint64(a), x)
	h2, l2 := bits.Mul64(uint64(b), y)
	return cmp.Or(cmp.Compare(h1, h2), cmp.Compare(l1, l2))
}

// rounded returns weight * num / den within the bounds, rounded to the nearest, halves up.
func rounded(p *party, num, den int64) int64 {
	if compare(p.weight, uint64(num), p.hi, uint64(den)) >= 0 {
		return p.hi
	}
	if compare(p.weight, uint64(num), p.lo, uint64(den)) <= 0 {
		return p.lo
	}
	// The result is below hi, so the quotient is an int64.
	h, l := bits.Mul64(uint64(p.weight), uint64(num))
	q, r := bits.Div64(h, l, uint64(den))
	if r >= uint64(den)-r {
		q++
	}
	return int64(q)
}

// divisor returns a fraction num / den. With it, the values weight * num / den of all parties, each kept
// within its bounds, add up to n.
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
	// The sum grows with the fraction num / den. It is linear between the fractions at which a party rises
	// above its lower bound or reaches its upper bound.
	bends := make([]bend, 0, 2*len(ps))
	for i := range ps {
		if p := &ps[i]; p.lo < p.hi {
			w := float64(p.weight)
			bends = append(bends, bend{float64(p.lo) / w, p.lo, p.weight, false}, bend{float64(p.hi) / w, p.hi, p.weight, true})
		}
	}
	return search(n-least, bends)
}

// bend is a value of num / den, namely at / weight, at which a party rises above its lower bound or reaches
// its upper bound.
type bend struct {
	near       float64 // the fraction, rounded
	at, weight int64
	up         bool
}

// compare orders bends exactly: it uses the rounded fractions only if they are far enough apart.
func (a bend) compare(b bend) int {
	if c := cmp.Compare(a.near, b.near); math.Abs(a.near-b.near) > 1e-12*max(a.near, b.near) {
		return c
	}
	return cmp.Or(compare(a.at, uint64(b.weight), b.at, uint64(a.weight)), flag(a.up)-flag(b.up))
}

// search returns the fraction at which the seats above the lower bounds add up to rest. It picks a
// pseudo-random bend and continues on one side of it, which is faster than sorting all bends.
func search(rest int64, bends []bend) (num, den int64) {
	var end bend // the lowest bend at which the sum is known to reach rest
	free := int64(0)
	for lot := uint64(1); len(bends) > 0; {
		lot = lot*6364136223846793005 + 1442695040888963407
		pivot := bends[lot>>33%uint64(len(bends))]
		before, same := partition(bends, pivot)
		left, weights, near := rest, free, 0.0
		for _, b := range bends[:before] {
			left, weights, near = b.pass(left, weights, near)
		}
		// left can fall below the range of int64. The floating-point sum near detects that case.
		if near > 1.001*float64(rest) || left <= 0 || compare(weights, uint64(pivot.at), left, uint64(pivot.weight)) >= 0 {
			bends, end = bends[:before], pivot
			continue
		}
		for _, b := range bends[before:same] {
			left, weights, near = b.pass(left, weights, near)
		}
		rest, free, bends = left, weights, bends[same:]
	}
	if free > 0 {
		return rest, free
	}
	return end.at, end.weight
}

// partition moves the bends before the pivot to the front, followed by those equal to the pivot. It returns
// the end index of each of the two parts.
func partition(bends []bend, pivot bend) (before, same int) {
	for i := range bends {
		switch c := bends[i].compare(pivot); {
		case c < 0:
			bends[i], bends[same] = bends[same], bends[i]
			bends[same], bends[before] = bends[before], bends[same]
			before++
			same++
		case c == 0:
			bends[i], bends[same] = bends[same], bends[i]
			same++
		}
	}
	return before, same
}

// pass updates the sums for a fraction beyond this bend: at its lower bound a party begins to grow with the
// fraction, and at its upper bound it stops.
func (b bend) pass(left, weights int64, near float64) (int64, int64, float64) {
	if b.up {
		return left - b.at, weights - b.weight, near + float64(b.at)
	}
	return left + b.at, weights + b.weight, near - float64(b.at)
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func sum(ps []party, of func(*party) int64) (total int64) {
	for i := range ps {
		total = plus(total, of(&ps[i]))
	}
	return total
}

// tie returns the rank of a name among equal claims. The order of the names differs from UID to UID.
func tie(uid types.UID, name string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, s := range [...]string{string(uid), "\x00", name} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	// Mix the bits: FNV alone gives neighboring ranks to names that differ only in the last letter.
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
