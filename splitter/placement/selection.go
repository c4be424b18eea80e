// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// selection chooses some of the clusters that an object may have, within the bounds of its policy.
type selection struct {
	uid    types.UID
	most   int           // the greatest number of chosen clusters; zero: no bound
	levels []groupBounds // one for each label of SpreadBy, in the same order
	offers []*candidate
	chosen []*candidate
	has    map[string]int // the number of chosen clusters, by group
}

// groupBounds are the bounds of the groups of one label: the least number of groups, and the greatest number of clusters
// in each. Zero means no bound.
type groupBounds struct {
	key              string
	groups, perGroup int
}

// candidate is a cluster that an object may have.
type candidate struct {
	name             string
	groups           []string // the group at each level: the values of the labels up to it
	rank             uint64
	present, avoided bool
	taken            bool // chosen
}

// shortage is a least number of groups that no choice of clusters reaches.
type shortage struct {
	key       string
	want, has int
}

func (s shortage) String() string {
	return fmt.Sprintf("the clusters form only %d of at least %d groups by %s", s.has, s.want, s.key)
}

// newSelection fails if a key in spec.Groups is not in spec.SpreadBy.
func newSelection(spec v1alpha1.PlacementPolicySpec, uid types.UID) (*selection, error) {
	s := &selection{uid: uid, most: int(spec.MaxClusters), has: map[string]int{}}
	for _, key := range spec.SpreadBy {
		s.levels = append(s.levels, groupBounds{key: key})
	}
	for _, g := range spec.Groups {
		i := slices.Index(spec.SpreadBy, g.Key)
		if i < 0 {
			return nil, fmt.Errorf("groups: key %q is not in spreadBy", g.Key)
		}
		s.levels[i].groups, s.levels[i].perGroup = int(g.MinGroups), int(g.MaxClusters)
	}
	return s, nil
}

// offer adds a cluster to those that can be chosen.
func (s *selection) offer(c splitter.Cluster, present, avoided bool) {
	o := &candidate{name: c.Name, rank: rank(s.uid, c.Name), present: present, avoided: avoided}
	path := ""
	for _, level := range s.levels {
		path += "/" + groupLabel(c, level.key)
		o.groups = append(o.groups, path)
	}
	s.offers = append(s.offers, o)
}

// take chooses as many clusters as the bounds allow. It prefers present clusters, then those that are not avoided. If no
// choice meets all bounds, it returns a bound that cannot be met.
func (s *selection) take() *shortage {
	bounded := s.most > 0 && len(s.offers) > s.most || slices.ContainsFunc(s.levels, func(l groupBounds) bool { return l.groups > 0 || l.perGroup > 0 })
	if !bounded {
		s.chosen = s.offers
		return nil
	}
	s.fill(func(o *candidate) bool { return o.present && !o.avoided })
	s.fill(func(o *candidate) bool { return o.present })
	if missing := s.cover(); missing != nil {
		return missing
	}
	s.fill(func(o *candidate) bool { return !o.avoided })
	s.fill(func(*candidate) bool { return true })
	return nil
}

// fill chooses clusters from the pool until the upper bounds permit no further one. It takes each from the group with the
// fewest chosen clusters.
func (s *selection) fill(pool func(*candidate) bool) {
	for {
		var next *candidate
		for _, o := range s.offers {
			if !o.taken && pool(o) && s.full(o) < 0 && (next == nil || s.compare(o, next) < 0) {
				next = o
			}
		}
		if next == nil {
			return
		}
		s.add(next)
	}
}

// cover adds and replaces clusters until each level has its least number of groups, the widest level first. Each step adds
// a group to one level and removes none from it or from a wider level, so cover ends. If a choice meets the bounds of the
// level, such a step exists: sets of clusters in different groups, within the upper bounds, form a matroid.
func (s *selection) cover() *shortage {
	for {
		level := slices.IndexFunc(s.levels, func(l groupBounds) bool { return l.groups > 0 && s.groups(l) < l.groups })
		if level < 0 {
			return nil
		}
		var best step
		for _, o := range s.offers {
			if s.has[o.groups[level]] > 0 {
				continue
			}
			next := step{in: o}
			if at := s.full(o); at >= 0 {
				if next.out = s.surplus(o, at, level); next.out == nil {
					continue
				}
			}
			if best.in == nil || s.prefers(next, best) {
				best = next
			}
		}
		if best.in == nil {
			l := s.levels[level]
			return &shortage{l.key, l.groups, s.groups(l)}
		}
		if best.out != nil {
			s.remove(best.out)
		}
		s.add(best.in)
	}
}

// step adds the cluster in. If out is not nil, the step removes out.
type step struct{ in, out *candidate }

// kept returns by how much a step changes the number of present clusters. out is always a present cluster: cover removes
// no cluster that it has added, because each of these is the only chosen one in its group.
func (x step) kept() (n int) {
	if x.in.present {
		n++
	}
	if x.out != nil {
		n--
	}
	return n
}

// prefers reports whether step a is better than b.
func (s *selection) prefers(a, b step) bool {
	if d := cmp.Compare(b.kept(), a.kept()); d != 0 {
		return d < 0
	}
	if a.in.avoided != b.in.avoided {
		return b.in.avoided
	}
	return s.compare(a.in, b.in) < 0
}

// surplus returns a chosen cluster that o can replace so that the level wanted loses no group, or nil. at is the result of
// full for o: the replaced cluster must be in the same full set.
func (s *selection) surplus(o *candidate, at, wanted int) (out *candidate) {
	for _, c := range s.chosen {
		if at > 0 && c.groups[at-1] != o.groups[at-1] || s.has[c.groups[wanted]] < 2 {
			continue
		}
		if out == nil || c.avoided && !out.avoided || c.avoided == out.avoided && s.compare(c, out) > 0 {
			out = c
		}
	}
	return out
}

// full returns which upper bound excludes o, the narrowest first: the level plus one if the group of o at this level is
// full, zero if the bound of all clusters is reached, and -1 if o can be chosen.
func (s *selection) full(o *candidate) int {
	for level := len(s.levels) - 1; level >= 0; level-- {
		if most := s.levels[level].perGroup; most > 0 && s.has[o.groups[level]] >= most {
			return level + 1
		}
	}
	if s.most > 0 && len(s.chosen) >= s.most {
		return 0
	}
	return -1
}

// groups returns how many groups of a level have a chosen cluster.
func (s *selection) groups(l groupBounds) int {
	level := slices.Index(s.levels, l)
	found := map[string]bool{}
	for _, c := range s.chosen {
		found[c.groups[level]] = true
	}
	return len(found)
}

// compare orders clusters by the number of chosen clusters in their groups, the widest group first, then by rank.
func (s *selection) compare(a, b *candidate) int {
	for level := range s.levels {
		if d := cmp.Compare(s.has[a.groups[level]], s.has[b.groups[level]]); d != 0 {
			return d
		}
	}
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.name, b.name))
}

func (s *selection) add(c *candidate) {
	c.taken, s.chosen = true, append(s.chosen, c)
	for _, g := range c.groups {
		s.has[g]++
	}
}

func (s *selection) remove(c *candidate) {
	c.taken, s.chosen = false, slices.DeleteFunc(s.chosen, func(o *candidate) bool { return o == c })
	for _, g := range c.groups {
		s.has[g]--
	}
}

// unlabeled is the group of the clusters without the label. It is not a valid label value.
const unlabeled = "-"

// groupLabel returns the value of a cluster's label, or unlabeled if the cluster does not have the
// label.
func groupLabel(c splitter.Cluster, key string) string { return cmp.Or(c.Labels[key], unlabeled) }

func rank(uid types.UID, name string) uint64 {
	sum := sha256.Sum256([]byte(string(uid) + "\x00" + name))
	return binary.BigEndian.Uint64(sum[:])
}
