// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// status compiles the paths of the status.
func (c *compiler) status(t *Type) {
	s := &t.spec.Status
	optional := func(name string, text v1alpha1.FieldPath) []string {
		if text == "" {
			return nil
		}
		return c.inStatus("status."+name, text).names()
	}
	t.pods, t.ready, t.available = optional("replicas", s.Replicas), optional("ready", s.Ready), optional("available", s.Available)
	if g := s.ObservedGeneration; g != nil {
		t.generation = c.inStatus("status.observedGeneration.path", g.Path).names()
		oneOf(c, "status.observedGeneration.type", g.Type, v1alpha1.GenerationInteger, v1alpha1.GenerationString)
	}
	if t.spec.Division == v1alpha1.DivideReplicas && s.Available == "" && s.Health == nil {
		c.fault("status", "has neither available nor health; accepted: one of them, as a replica moves only if another one is available")
	}
	c.folded(t)
	if c.atMost("status.conditions", len(s.Conditions), maxConditions) {
		c.conditions(s)
	}
	if h := s.Health; h != nil {
		c.health(t, h)
	}
	if c.atMost("status.add", len(s.Add), 4) {
		for i, a := range s.Add {
			oneOf(c, fmt.Sprintf("status.add[%d]", i), a, v1alpha1.AddAvailable, v1alpha1.AddPlaced, v1alpha1.AddDuplicated, v1alpha1.AddScheduled)
			if a == v1alpha1.AddAvailable && s.Available == "" && s.Health == nil {
				c.fault(fmt.Sprintf("status.add[%d]", i), "is Available, which needs status.available or status.health")
			}
		}
	}
}

// folded compiles the fields that are computed from those of the shards. No two may overlap, and none the fields that the
// splitter computes itself.
func (c *compiler) folded(t *Type) {
	s := &t.spec.Status
	if !c.atMost("status.fields", len(s.Fields), maxFields) {
		return
	}
	taken := []path{{{name: "status"}, {name: "conditions"}}}
	if g := s.ObservedGeneration; g != nil {
		if p, err := parse(g.Path); err == nil {
			taken = append(taken, p)
		}
	}
	for i, f := range s.Fields {
		name := fmt.Sprintf("status.fields[%d]", i)
		oneOf(c, name+".fold", f.Fold, v1alpha1.FoldSum, v1alpha1.FoldLatest, v1alpha1.FoldSame, v1alpha1.FoldWorst, v1alpha1.FoldJoin)
		if (f.Fold == v1alpha1.FoldWorst) != (len(f.Order) > 0) {
			c.fault(name+".order", "is required with the fold Worst, and not possible with another one")
		}
		if f.Always && f.Fold != v1alpha1.FoldSum {
			c.fault(name+".always", "is possible only with the fold Sum")
		}
		c.atMost(name+".order", len(f.Order), maxOrder)
		p := c.inStatus(name+".path", f.Path)
		if p == nil {
			continue
		}
		for _, q := range taken {
			if p.overlaps(q) {
				c.fault(name+".path", "is %q, which overlaps another field of the status", string(f.Path))
				break
			}
		}
		taken = append(taken, p)
		t.folded = append(t.folded, Field{Path: p.names(), FoldedField: f})
	}
}

// conditions checks the conditions that are computed from those of the shards.
func (c *compiler) conditions(s *v1alpha1.WorkloadStatusPaths) {
	taken := map[string]bool{}
	for _, a := range s.Add {
		taken[string(a)] = true
	}
	for i, f := range s.Conditions {
		name := fmt.Sprintf("status.conditions[%d]", i)
		oneOf(c, name+".fold", f.Fold, v1alpha1.FoldAll, v1alpha1.FoldAny)
		switch {
		case f.Type == "" || len(f.Type) > maxName:
			c.fault(name+".type", "has %d characters; accepted: 1 to %d", len(f.Type), maxName)
		case taken[f.Type]:
			c.fault(name+".type", "is %q, which is declared twice, or in status.add", f.Type)
		}
		taken[f.Type] = true
	}
}

func (c *compiler) health(t *Type, h *v1alpha1.HealthRule) {
	if (h.Condition == "") == (h.Path == "") || (h.Path == "") != (len(h.Values) == 0) {
		c.fault("status.health", "accepted: either condition, or path and values")
		return
	}
	c.atMost("status.health.values", len(h.Values), maxOrder)
	if h.Path != "" {
		t.health = c.inStatus("status.health.path", h.Path).names()
	}
}
