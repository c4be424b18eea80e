// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"math"
)

// now returns all that the cluster's controller may do now.
func (c Cluster) now() Step {
	s := Step{Name: c.Name, Replicas: c.Spec, Unavailable: max(c.Unavailable, c.Prior.Unavailable), Surge: max(c.Surge, c.Prior.Surge)}
	s.Roll = s.Unavailable+s.Surge > 0
	return s
}

// fewest returns the number of pods down to which the cluster's controller may remove pods now.
func (c Cluster) fewest() int64 { return max(0, c.Spec+c.Surge-c.Prior.Fewer) }

// PriorTo returns the Prior of the cluster once its spec has changed to the step. Until the cluster's
// controller has observed the new spec, it may still do all that it may do now. A caller of Plan
// stores the result together with the step, unless it is zero.
func (c Cluster) PriorTo(next Step) Prior {
	if atRest := !c.Unreported && !c.Unobserved && !c.Outdated && c.Pods == c.Spec; atRest {
		return Prior{}
	}
	now := c.now()
	return Prior{
		Unavailable: max(0, next.Replicas-(now.Replicas-now.Unavailable)),
		Surge:       max(0, now.most()-next.Replicas),
		Fewer:       max(0, next.most()-c.fewest()),
	}
}

// fixed reports whether the step of the cluster must not change anything now.
func (c Cluster) fixed() bool {
	return c.Unreachable || c.Unobserved && !c.Unreported && !c.Gone
}

// with returns the step of the cluster, with another number of replicas.
func (p *part) with(replicas int64) Step {
	s := p.step
	s.Replicas = replicas
	s.Unavailable = min(s.Unavailable, replicas)
	if replicas == 0 {
		s.Surge = 0 // the workload leaves the cluster
	}
	s.Roll = s.Roll && s.Unavailable+s.Surge > 0
	return s
}

// withSurge returns the step of the cluster, with another surge.
func (p *part) withSurge(n int64) Step {
	s := p.step
	s.Surge = n
	s.Roll = s.Unavailable+s.Surge > 0
	return s
}

// stays returns how many available pods the cluster certainly has left once it has scaled to the
// given number of pods.
func (c Cluster) stays(pods int64) int64 {
	switch {
	case c.Unreachable || c.Unreported:
		return 0
	case !c.Outdated && !c.Delayed:
		return min(c.Available, pods) // of one template, pods that are not available leave first
	}
	return max(0, c.Available-max(0, max(c.Pods, c.now().most())-pods))
}

// keeps returns how many available pods the cluster certainly has left if it follows the step.
func (c Cluster) keeps(s Step) int64 {
	return min(c.stays(s.most()), s.least())
}

// certain returns how many available pods the cluster certainly has left, whatever it may do now.
func (c Cluster) certain() int64 {
	return min(c.stays(c.fewest()), c.now().least())
}

// loss returns by how many available pods the step may reduce what the cluster certainly has left.
func (c Cluster) loss(s Step) int64 {
	return max(0, c.certain()-c.keeps(s))
}

// holds returns how many pods the cluster can have at most, now and if it follows the step.
func (c Cluster) holds(s Step) int64 {
	if c.Gone || c.Unreported && c.Want == 0 {
		return 0 // its replacements must not wait for it
	}
	return max(c.Pods, c.now().most(), s.most())
}

// gain returns by how many pods the step may raise the number of pods.
func (c Cluster) gain(s Step) int64 { return c.holds(s) - c.holds(c.now()) }

// most returns how many pods the step allows.
func (s Step) most() int64 {
	if s.Roll {
		return s.Replicas + s.Surge
	}
	return s.Replicas
}

// least returns how many available pods a controller that replaces pods keeps.
func (s Step) least() int64 {
	if s.Roll {
		return max(0, s.Replicas-s.Unavailable)
	}
	return math.MaxInt64
}

// unavailable returns how many replicas of the step are not certainly available. So many may be
// replaced at once without a loss.
func (c Cluster) unavailable(s Step) int64 { return max(0, s.Replicas-c.stays(s.most())) }

func (b Budget) check(o Options, clusters []Cluster) error {
	if err := inRange("Budget", []string{"Replicas", "MaxUnavailable", "MaxSurge", "MoveSurge"},
		b.Replicas, b.MaxUnavailable, b.MaxSurge, b.MoveSurge); err != nil {
		return err
	}
	if err := inRange("Options", []string{"Clusters"}, o.Clusters); err != nil {
		return err
	}
	seen := make(map[string]bool, len(clusters))
	for _, c := range clusters {
		switch {
		case c.Name == "":
			return errors.New("a cluster has no Name")
		case seen[c.Name]:
			return fmt.Errorf("two clusters have the Name %q", c.Name)
		}
		seen[c.Name] = true
		if err := inRange("cluster "+c.Name, clusterNumbers, c.Want, c.Spec, c.Pods, c.Available,
			c.Unavailable, c.Surge, c.Prior.Unavailable, c.Prior.Surge, c.Prior.Fewer); err != nil {
			return err
		}
	}
	return nil
}

var clusterNumbers = []string{"Want", "Spec", "Pods", "Available", "Unavailable", "Surge", "Prior.Unavailable", "Prior.Surge", "Prior.Fewer"}

// inRange returns an error if one of the numbers is not a number of replicas in Kubernetes.
func inRange(of string, names []string, numbers ...int64) error {
	for i, n := range numbers {
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("%s of %s is %d, not a number from 0 to %d", names[i], of, n, math.MaxInt32)
		}
	}
	return nil
}
