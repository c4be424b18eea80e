// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import "slices"

// scaling is a divided workload whose replicas an autoscaler sets. The members are the clusters that shall have a part of
// the autoscaler: scaling.minima chooses them. A part sets the replicas of the workload's shard in its cluster.
type scaling struct {
	min, max int64   // of the autoscaler
	present  int64   // replicas of the workload
	demand   Demand  // as the Placement returned it, with the UID of the workload
	shares   []Share // as the Placement returned them
	clusters map[string]scaledCluster
}

// scaledCluster is the state of an autoscaled workload in one cluster.
type scaledCluster struct {
	replicas  int64 // of the workload's shard
	available int64 // of these
	runs      int64 // replicas that are desired, or that may still run
	floor     int64 // see part.floor

	scaled   bool  // the cluster has a part of the autoscaler, which is not being deleted
	ending   bool  // the part of the autoscaler is being deleted
	min, max int64 // of the part
	settled  bool  // the last report agrees with min and max: the cluster counts as having observed them
	reported bool  // the cluster's autoscaler has reported
	desired  int64 // replicas that the cluster's autoscaler wants, if reported
	limited  bool  // the cluster's autoscaler wants more than max
}

// bounds are the minReplicas and maxReplicas of one part of an autoscaler.
type bounds struct{ min, max int64 }

// paused reports whether a person has scaled the workload to zero. As with one cluster, the autoscaler then does nothing.
func (s scaling) paused() bool { return s.present == 0 && s.min > 0 }

// wanted returns the replicas that a cluster's autoscaler wants within its bounds, or those of the shard if the autoscaler
// has not reported yet.
func (c scaledCluster) wanted() int64 {
	if c.reported {
		return min(max(c.desired, c.min), c.max)
	}
	return c.replicas
}

// guaranteed returns how many replicas of a cluster its autoscaler cannot remove: the observed minReplicas. Only these
// count as replacements of replicas that leave another cluster.
func (c scaledCluster) guaranteed() int64 {
	if !c.settled {
		return 0
	}
	return c.min
}

// kept returns how many replicas no autoscaler removes: minReplicas of the part, or without a part all available ones.
func (c scaledCluster) kept() int64 {
	if !c.scaled {
		return min(c.available, c.replicas)
	}
	return c.min
}

// minima chooses the members and returns the minReplicas of each, which add up to the autoscaler's. Each member needs at
// least one, so minReplicas limits the number of members. Clusters with a part are preferred. A cluster joins only while
// the members use fewer than maxReplicas.
func (s scaling) minima() (map[string]int64, error) {
	if s.paused() {
		return nil, nil
	}
	members := map[string]int64{}
	for name, c := range s.clusters {
		if c.scaled {
			members[name] = 1
		}
	}
	begins := len(members) == 0
	if begins {
		for name, c := range s.clusters {
			if c.replicas > 0 {
				members[name] = 1
			}
		}
	}
	s.hold(members)
	divide := func(allowed func(string) bool) (map[string]int64, error) {
		shares := changed(withPresent(s.shares, members), func(c *Share) {
			if !allowed(c.Name) {
				c.Min, c.Max = 0, new(int64(0))
			}
		})
		plan, err := Divide(Demand{Replicas: max(1, s.min), Mode: s.demand.Mode, UID: s.demand.UID}, shares)
		parts := map[string]int64{}
		for _, a := range plan.Shards {
			if a.Replicas > 0 {
				parts[a.Cluster] = min(a.Replicas, s.min)
			}
		}
		return parts, err
	}
	parts, err := divide(func(string) bool { return true })
	if err != nil || begins {
		return parts, err
	}
	joining, free := map[string]bool{}, s.max
	for name := range parts {
		if c := s.clusters[name]; c.scaled {
			free -= max(c.wanted(), c.floor)
		}
	}
	for _, name := range sorted(parts) {
		if members[name] == 0 && int64(len(joining)) < free {
			joining[name] = true
		}
	}
	return divide(func(name string) bool { return members[name] > 0 || joining[name] })
}

// hold makes each cluster on hold that has a part a member with its present minReplicas: the cluster may still run all these
// replicas.
func (s scaling) hold(members map[string]int64) {
	for _, c := range clusters(s.shares) {
		if part := s.clusters[c.Name]; c.Hold && part.scaled {
			members[c.Name] = max(1, part.min)
		}
	}
}

// maxima returns the maxReplicas of each member. They add up to the autoscaler's, minus the replicas of clusters that the
// workload leaves. At first they are divided by weight. Later, half of the unused ones go to the members whose autoscalers
// are limited by their maxReplicas. A member gets fewer than it wants only if all members together want too many.
func (s scaling) maxima(minima map[string]int64) (map[string]int64, error) {
	total := s.max
	for name, c := range s.clusters {
		if _, member := minima[name]; member {
			continue
		}
		left := c.runs
		if c.scaled || c.ending {
			left = max(left, c.max)
		}
		total -= left
	}
	least, present := map[string]int64{}, map[string]int64{}
	var required, needed, limited int64
	for name := range minima {
		c := s.clusters[name]
		least[name] = max(1, minima[name], c.floor)
		required += least[name]
		needed += max(least[name], c.wanted())
		if c.limited && c.settled {
			limited++
		}
	}
	for name := range minima {
		c := s.clusters[name]
		if needed > total {
			present[name] = c.wanted()
			continue
		}
		least[name] = max(least[name], c.wanted())
		if c.scaled {
			present[name] = c.max
		}
		if c.limited && c.settled && total > needed {
			least[name] += max(1, (total-needed)/2/limited)
		}
	}
	shares := changed(s.shares, func(c *Share) {
		if _, member := minima[c.Name]; !member {
			c.Min, c.Max, c.Hold = 0, new(int64(0)), false
			return
		}
		c.Min, c.Present = least[c.Name], present[c.Name]
		for _, limit := range []**int64{&c.Max, &c.Capacity} {
			if *limit != nil {
				*limit = new(max(1, minima[c.Name], s.clusters[c.Name].floor, **limit))
				c.Min = min(c.Min, **limit)
			}
		}
	})
	plan, err := Divide(Demand{Replicas: max(total, required), Mode: s.demand.Mode, UID: s.demand.UID}, shares)
	if err != nil {
		return nil, err
	}
	parts := map[string]int64{}
	for name := range minima {
		parts[name] = max(1, plan.Replicas(name))
	}
	return parts, nil
}

// next returns the bounds to write now, on the way to minima and maxima. It raises a maximum only after all members have
// observed lower maxima of the others. It lowers a minimum only by as much as members have observed higher minima of the
// others. A maximum is never below the minimum, even if it must rise early.
func (s scaling) next(minima, maxima map[string]int64) map[string]bounds {
	lowering, surplus := false, int64(0)
	for name, least := range minima {
		c := s.clusters[name]
		unsettled := c.scaled && !c.settled
		lowering = lowering || unsettled || c.scaled && c.max > maxima[name]
		surplus -= least
		if !unsettled {
			surplus += c.kept()
		}
	}
	next := map[string]bounds{}
	for _, name := range sorted(minima) {
		c := s.clusters[name]
		b := bounds{max(minima[name], c.floor), maxima[name]}
		if lowering {
			b.max = min(b.max, c.max)
		}
		if kept := c.kept(); b.min < kept {
			lower := min(kept-b.min, max(0, surplus))
			surplus -= lower
			b.min = kept - lower
		}
		b.max = max(1, b.max, b.min)
		next[name] = b
	}
	return next
}

// bounds returns the bounds to write now for each member.
func (s scaling) bounds() (map[string]bounds, error) {
	minima, err := s.minima()
	if err != nil {
		return nil, err
	}
	minima = s.paced(minima)
	maxima, err := s.maxima(minima)
	if err != nil {
		return nil, err
	}
	return s.next(minima, maxima), nil
}

// paced returns the minima to use now. While replicas leave clusters, the minimum of a member rises only up to its kept
// replicas or its floor, which the division of the workload raises step by step within maxSurge.
func (s scaling) paced(minima map[string]int64) map[string]int64 {
	leaves := false
	for name, c := range s.clusters {
		_, member := minima[name]
		leaves = leaves || !member && c.replicas > 0
	}
	if !leaves {
		return minima
	}
	now := map[string]int64{}
	for name, least := range minima {
		c := s.clusters[name]
		now[name] = min(least, max(1, c.kept(), c.floor))
	}
	return now
}

// changed returns a copy of the shares in which f has changed those of the clusters. It raises Max and Capacity of a group
// to the sum of the minima of its members.
func changed(shares []Share, f func(*Share)) []Share {
	shares = slices.Clone(shares)
	for i := range shares {
		c := &shares[i]
		if !c.Group {
			f(c)
			continue
		}
		c.Members = changed(c.Members, f)
		least := int64(0)
		for _, m := range clusters(c.Members) {
			least = plus(least, m.Min)
		}
		for _, limit := range []**int64{&c.Max, &c.Capacity} {
			if *limit != nil {
				*limit = new(max(least, **limit))
			}
		}
	}
	return shares
}
