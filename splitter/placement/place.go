// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// Place is the splitter.Placement over the clusters in a parent's annotations, which a Controller
// writes. Controller and Splitter communicate only through objects, and may run in two processes. A
// cluster that the parent is leaving gets no replicas and loses the present ones. In the other
// clusters of the annotations replicas stay, even if the cluster drains or is lost, until the
// Controller changes the annotations. A cluster gets no new replicas while it is unschedulable, or has
// a taint NoSchedule or NoExecute that the tolerations in the annotations do not tolerate forever.
// Place needs no clock: the Controller decides when a parent leaves a cluster.
//
// For a parent without the annotations Place returns splitter.ErrUndecided. At most a quarter of the
// replicas move at once. No cluster gets more replicas than the number of pods that it can hold, but
// present replicas stay.
func Place(parent *unstructured.Unstructured, clusters []splitter.Cluster) (splitter.Demand, []splitter.Share, error) {
	if parent == nil {
		return splitter.Demand{}, nil, errors.New("placement: parent is nil")
	}
	s, placed, err := read(parent)
	if err != nil {
		return splitter.Demand{}, nil, err
	}
	if !placed {
		return splitter.Demand{}, nil, fmt.Errorf("%w: annotation %s is absent", splitter.ErrUndecided, v1alpha1.PlacementAnnotation)
	}
	d := splitter.Demand{Moves: splitter.Quarter(parent)}
	how := cmp.Or(s.division, &division{})
	if r := how.Rollout; r != nil {
		d.Rollout = splitter.Rollout{Order: r.Order, Clusters: int64(r.MaxClusters), MoveSurge: int64(r.MoveSurge)}
	}
	if how.Mode == v1alpha1.PlacementNone {
		// With Duplicate and no shares, the Splitter deletes all shards, whether or not replicas
		// run elsewhere.
		return splitter.Demand{Mode: splitter.Duplicate}, nil, nil
	}
	by := how.SpreadBy
	switch how.Mode {
	case v1alpha1.PlacementFewest:
		d.Mode = splitter.Fewest
	case v1alpha1.PlacementFewestDivide:
		d.Mode = splitter.FewestSpread
	case v1alpha1.PlacementFill:
		d.Mode = splitter.Fill
	case v1alpha1.PlacementDuplicate:
		d.Mode, by = splitter.Duplicate, nil
	}
	var top groups
	for _, name := range s.clusters {
		leaving := slices.Contains(s.leaving, name)
		i := slices.IndexFunc(clusters, func(c splitter.Cluster) bool { return c.Name == name })
		c := splitter.Cluster{Name: name, State: splitter.Holding}
		switch {
		case i < 0 && leaving:
			continue
		case i >= 0:
			c = clusters[i]
		}
		if c.State == splitter.Draining || repels(how.Tolerations, c) {
			c.State = splitter.Holding
		}
		if leaving {
			c.State = splitter.Draining
		}
		asks := claim(how.Clusters, c)
		if leaving {
			asks.weight = new(int64(0)) // the cluster claims no replicas
		}
		top.add(c, by, splitter.Restrict(splitter.Share{Name: name, Weight: asks.weight, Min: asks.min, Max: asks.max, Capacity: c.Pods}, c))
	}
	return d, top.shares, nil
}

// groups holds the shares of one level of groups, and the next level of each group by name.
type groups struct {
	shares []splitter.Share
	inner  map[string]*groups
}

// add puts a share into the group of its cluster.
func (g *groups) add(c splitter.Cluster, by []string, s splitter.Share) {
	if len(by) == 0 {
		g.shares = append(g.shares, s)
		return
	}
	name := groupLabel(c, by[0])
	i := slices.IndexFunc(g.shares, func(s splitter.Share) bool { return s.Name == name })
	if i < 0 {
		i = len(g.shares)
		g.shares = append(g.shares, splitter.Share{Name: name, Group: true})
		if g.inner == nil {
			g.inner = map[string]*groups{}
		}
		g.inner[name] = &groups{}
	}
	g.inner[name].add(c, by[1:], s)
	g.shares[i].Members = g.inner[name].shares
}
