// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import "slices"

// start lets clusters replace their outdated pods, with shares of the rest of the budget.
// Clusters whose rollout has begun keep their shares. If no cluster waits, they share the rest.
func (p *plan) start() {
	var waiting, rolling []*part
	for _, c := range p.order {
		switch {
		case c.step.Roll:
			rolling = append(rolling, c)
		case c.Outdated && !c.fixed() && !c.Gone && c.step.Replicas > 0:
			waiting = append(waiting, c)
		}
	}
	// Pods that are about to leave come last: they need no new template if they leave first.
	slices.SortStableFunc(waiting, func(a, b *part) int { return a.leaves() - b.leaves() })
	if len(waiting) > 0 {
		p.begin(waiting, int64(len(rolling)))
		return
	}
	rolling = slices.DeleteFunc(rolling, func(c *part) bool { return c.fixed() })
	// Each enlargement costs a write, so it must at least double what the cluster has.
	p.share(rolling, func(c *part, unavailable, surge int64) bool {
		return unavailable+surge >= max(1, c.step.Unavailable+c.step.Surge)
	})
}

// begin starts the rollout of waiting clusters, while the given number of others is in a rollout.
func (p *plan) begin(waiting []*part, rolling int64) {
	next := waiting
	if p.Clusters > 0 {
		next = waiting[:min(int64(len(waiting)), max(0, p.Clusters-rolling))]
	}
	always := func(*part, int64, int64) bool { return true }
	p.share(next, always)
	if p.Clusters > 0 && rolling == 0 && !slices.ContainsFunc(next, func(c *part) bool { return c.step.Roll }) {
		// Unavailable pods of a later cluster may use up the budget. Replacing them needs none.
		for _, c := range waiting {
			if p.share([]*part{c}, always); c.step.Roll {
				return
			}
		}
	}
}

func (c *part) leaves() int {
	if c.Want == 0 {
		return 1
	}
	return 0
}

// share divides the rest of the budget over clusters, in proportion to their replicas, the first
// ones rounded up. A cluster gets its part if worthwhile returns true for it, and may in any case
// replace the pods that are unavailable already.
func (p *plan) share(among []*part, worthwhile func(c *part, unavailable, surge int64) bool) {
	var replicas int64
	for _, c := range among {
		replicas += c.step.Replicas
	}
	for _, c := range among {
		n := c.step.Replicas
		unavailable, surge := portion(p.available, n, replicas), portion(p.pods, n, replicas)
		replicas -= n
		s := c.step
		if !s.Roll {
			s.Unavailable, s.Surge = min(c.unavailable(s), max(1, p.MaxUnavailable)), max(0, c.Pods-n)
		}
		more := s
		more.Unavailable, more.Surge = min(n, s.Unavailable+unavailable), min(n, s.Surge+surge)
		if worthwhile(c, more.Unavailable-s.Unavailable, more.Surge-s.Surge) {
			s = more
		}
		if s.Roll = s.Unavailable+s.Surge > 0; !s.Roll {
			continue
		}
		before := c.step
		c.step = s
		p.available -= c.keeps(before) - c.keeps(s)
		p.pods -= c.holds(s) - c.holds(before)
	}
}

// portion returns the part of n for a cluster that has some of all remaining replicas, rounded up.
func portion(n, some, all int64) int64 {
	if n <= 0 || all == 0 {
		return 0
	}
	return (n*some + all - 1) / all
}
