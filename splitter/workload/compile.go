// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// The longest lists and names of a declaration. The schema of WorkloadType has the same limits.
const (
	maxTemplates  = 8
	maxReferences = 32
	maxFields     = 32
	maxConditions = 16
	maxOrder      = 16
	maxName       = 316 // the longest type of a condition
)

// Compile reads a declaration and sets its defaults. The error lists all faults, one per line.
func Compile(spec v1alpha1.WorkloadTypeSpec) (*Type, error) {
	t := &Type{spec: *spec.DeepCopy()}
	c := compiler{}
	c.defaults(&t.spec)
	c.identity(&t.spec)
	c.fields(t)
	c.status(t)
	c.scaling(t)
	if err := errors.Join(c.faults...); err != nil {
		return nil, err
	}
	return t, nil
}

// compiler collects the faults of a declaration.
type compiler struct{ faults []error }

func (c *compiler) fault(field, format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf("spec.%s: %s", field, fmt.Sprintf(format, args...)))
}

// oneOf adds a fault if the value is not in the list.
func oneOf[T ~string](c *compiler, field string, value T, accepted ...T) {
	if !slices.Contains(accepted, value) {
		var names []string
		for _, a := range accepted {
			names = append(names, string(a))
		}
		c.fault(field, "is %q; accepted: %s", string(value), strings.Join(names, ", "))
	}
}

// atMost adds a fault and returns false if a list has more than limit items.
func (c *compiler) atMost(field string, n, limit int) bool {
	if n > limit {
		c.fault(field, "has %d items; accepted: at most %d", n, limit)
	}
	return n <= limit
}

func (c *compiler) defaults(s *v1alpha1.WorkloadTypeSpec) {
	s.Division = cmp.Or(s.Division, v1alpha1.DivideReplicas)
	s.ScaleDown = cmp.Or(s.ScaleDown, v1alpha1.ScaleDownAny)
	if s.Division == v1alpha1.DivideReplicas {
		s.Replicas = cmp.Or(s.Replicas, "spec.replicas")
	}
	if g := s.Status.ObservedGeneration; g != nil {
		g.Type = cmp.Or(g.Type, v1alpha1.GenerationInteger)
	}
	for i := range s.Status.Conditions {
		s.Status.Conditions[i].Fold = cmp.Or(s.Status.Conditions[i].Fold, v1alpha1.FoldAll)
	}
}

// identity checks the type and the enums of the declaration itself.
func (c *compiler) identity(s *v1alpha1.WorkloadTypeSpec) {
	for _, f := range []struct{ field, value string }{{"version", s.Resource.Version}, {"resource", s.Resource.Resource}, {"kind", s.Resource.Kind}} {
		if f.value == "" {
			c.fault("resource."+f.field, "must be set")
		}
	}
	if strings.Contains(s.Resource.Resource, "/") {
		c.fault("resource.resource", "is %q; accepted: a resource without subresource", s.Resource.Resource)
	}
	oneOf(c, "division", s.Division, v1alpha1.DivideReplicas, v1alpha1.DivideEveryCluster, v1alpha1.DivideOneCluster, v1alpha1.DivideNone)
	oneOf(c, "scaleDown", s.ScaleDown, v1alpha1.ScaleDownAny, v1alpha1.ScaleDownUnreadyFirst)
	if s.Division == v1alpha1.DivideNone && s.ScaleTarget == nil && s.PodSelector == "" {
		c.fault("division", "is None, and there is neither scaleTarget nor podSelector, so the declaration declares nothing")
	}
	if s.PodSelector != "" && (s.Division != v1alpha1.DivideNone || s.ScaleTarget != nil) {
		c.fault("podSelector", "is set; accepted: only with the division None and without scaleTarget")
	}
}

// field compiles a path of at least two names outside of metadata and status, such as spec.replicas. each permits [*].
func (c *compiler) field(name string, text v1alpha1.FieldPath, each bool) path {
	p, err := parse(text)
	switch {
	case err != nil:
		c.fault(name, "is %q; %v", string(text), err)
		return nil
	case len(p) < 2 || p[1].each || slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, p[0].name):
		c.fault(name, "is %q; accepted: a field below one outside of metadata and status, such as spec.replicas", string(text))
		return nil
	case !each && p.hasEach():
		c.fault(name, "is %q; accepted: a path without [*]", string(text))
		return nil
	}
	return p
}

// inStatus compiles a path below status.
func (c *compiler) inStatus(name string, text v1alpha1.FieldPath) path {
	p, err := parse(text)
	switch {
	case err != nil:
		c.fault(name, "is %q; %v", string(text), err)
		return nil
	case len(p) < 2 || p[0].name != "status" || p.hasEach():
		c.fault(name, "is %q; accepted: a path below status without [*], such as status.readyReplicas", string(text))
		return nil
	}
	return p
}

// fields compiles the paths outside of the status.
func (c *compiler) fields(t *Type) {
	s := &t.spec
	if s.Replicas != "" {
		t.replicas = c.field("replicas", s.Replicas, false)
	}
	if s.PodSelector != "" {
		t.podSelector = c.field("podSelector", s.PodSelector, false)
	}
	if s.Selector != "" {
		t.selector = c.field("selector", s.Selector, false)
	}
	if c.atMost("templates", len(s.Templates), maxTemplates) {
		for i, text := range s.Templates {
			name := fmt.Sprintf("templates[%d]", i)
			p := c.field(name, text, true)
			if p != nil && t.replicas != nil && p.overlaps(t.replicas) {
				c.fault(name, "is %q, which overlaps replicas", string(text))
			}
			t.templates = append(t.templates, p)
		}
	}
	if c.atMost("references", len(s.References), maxReferences) {
		for i, r := range s.References {
			name := fmt.Sprintf("references[%d]", i)
			gvr := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: string(r.Resource)}
			switch {
			case (r.Group == "") != (r.Version == ""):
				c.fault(name, "sets only one of group and version; accepted: both or neither")
			case r.Group == "":
				oneOf(c, name+".resource", r.Resource, "configmaps", "persistentvolumeclaims", "secrets", "serviceaccounts", "services")
				gvr.Version = "v1"
			case r.Resource == "" || strings.Contains(string(r.Resource), "/"):
				c.fault(name+".resource", "is %q; accepted: a resource without subresource", string(r.Resource))
			}
			t.references = append(t.references, reference{c.field(name+".path", r.Path, true), gvr})
		}
	}
}

// scaling compiles the path by which an object refers to the workload that it scales.
func (c *compiler) scaling(t *Type) {
	s := t.spec.ScaleTarget
	if s == nil {
		return
	}
	t.scaleTarget = c.field("scaleTarget.path", s.Path, false)
	if _, err := schema.ParseGroupVersion(s.APIVersion); err != nil {
		c.fault("scaleTarget.apiVersion", "is %q; accepted: GROUP/VERSION or VERSION", s.APIVersion)
	}
	if (s.APIVersion == "") != (s.Kind == "") {
		c.fault("scaleTarget", "sets only one of apiVersion and kind; accepted: both or neither")
	}
}
