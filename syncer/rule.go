// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rule says who owns a field of the types that it matches.
type Rule struct {
	// Type is what the rule is for.
	Type schema.GroupKind
	// Path is where the field is: names divided by dots, [*] for each item of a list, ["a.b"] for a name with dots:
	// "spec.clusterIP", "spec.ports[*].nodePort", `metadata.annotations["example.org/node"]`.
	Path string
	// Owner is whose value counts.
	Owner Owner
}

// Owner is the side whose value of a field counts.
type Owner int

const (
	// Upstream owns each field for which there is no rule: its value goes down, and who changes it downstream is
	// overruled and reported.
	Upstream Owner = iota
	// Downstream owns the field: it is never sent.
	Downstream
	// FirstWriter owns the field: it goes down until somebody changes it downstream, as an autoscaler changes replicas,
	// and is left to them from then on. The path must not have [*].
	FirstWriter
)

// builtin are the fields of core types that belong to the cluster in which the object is.
var builtin = []Rule{
	{schema.GroupKind{Kind: "Service"}, "spec.clusterIP", Downstream},
	{schema.GroupKind{Kind: "Service"}, "spec.clusterIPs", Downstream},
	{schema.GroupKind{Kind: "Service"}, "spec.healthCheckNodePort", Downstream},
	{schema.GroupKind{Kind: "Service"}, "spec.ipFamilies", Downstream},
	{schema.GroupKind{Kind: "Service"}, "spec.ports[*].nodePort", Downstream},
	{schema.GroupKind{Kind: "PersistentVolumeClaim"}, "spec.volumeName", Downstream},
	{schema.GroupKind{Kind: "PersistentVolume"}, "spec.claimRef.uid", Downstream},
	{schema.GroupKind{Kind: "PersistentVolume"}, "spec.claimRef.resourceVersion", Downstream},
	{schema.GroupKind{Kind: "ServiceAccount"}, "secrets", Downstream},
	{schema.GroupKind{Kind: "Pod"}, "spec.nodeName", Downstream},
	{schema.GroupKind{Group: "batch", Kind: "Job"}, "spec.selector", Downstream},
}

// rules are those for one type: at most one per path.
type rules []rule

type rule struct {
	path  []step
	text  string
	owner Owner
}

// step leads from a map or list to what is in it.
type step struct {
	name string
	each bool // all items of a list
}

// rulesFor returns the rules of a type: the last one of each path.
func rulesFor(kind schema.GroupKind, custom []Rule) rules {
	var found rules
	for _, r := range slices.Concat(builtin, custom) {
		if r.Type != kind {
			continue
		}
		path, err := parsePath(r.Path)
		if err != nil {
			continue // New has refused it
		}
		found = slices.DeleteFunc(found, func(known rule) bool { return slices.Equal(known.path, path) })
		found = append(found, rule{path, r.Path, r.Owner})
	}
	return found
}

// check says what is wrong with a rule.
func (r Rule) check() error {
	path, err := parsePath(r.Path)
	switch {
	case r.Type.Kind == "":
		return errors.New("the Type has no kind")
	case err != nil:
		return fmt.Errorf("the Path %q: %w", r.Path, err)
	case r.Owner < Upstream || r.Owner > FirstWriter:
		return fmt.Errorf("the Owner %d: want Upstream, Downstream or FirstWriter", r.Owner)
	case r.Owner == FirstWriter && slices.ContainsFunc(path, func(s step) bool { return s.each }):
		return fmt.Errorf("the Path %q: [*] is not possible with FirstWriter", r.Path)
	}
	return nil
}

var errPath = errors.New(`want names divided by dots, [*] or ["name"], such as spec.ports[*].nodePort`)

func parsePath(text string) ([]step, error) {
	var path []step
	for rest := text; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "[*]"):
			path, rest = append(path, step{each: true}), rest[3:]
		case strings.HasPrefix(rest, `["`):
			name, after, ok := strings.Cut(rest[2:], `"]`)
			if !ok || name == "" {
				return nil, errPath
			}
			path, rest = append(path, step{name: name}), after
		default:
			if len(path) > 0 {
				if rest[0] != '.' {
					return nil, errPath
				}
				rest = rest[1:]
			}
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return nil, errPath
			}
			path, rest = append(path, step{name: rest[:end]}), rest[end:]
		}
	}
	if len(path) == 0 || path[0].each {
		return nil, errPath
	}
	return path, nil
}

// names returns the path of a rule without [*].
func (r rule) names() []string {
	var names []string
	for _, s := range r.path {
		names = append(names, s.name)
	}
	return names
}

// remove takes the field at path out of v.
func remove(v any, path []step) {
	switch at := path[0]; {
	case at.each:
		items, _ := v.([]any)
		for _, item := range items {
			if len(path) > 1 {
				remove(item, path[1:])
			}
		}
	default:
		fields, _ := v.(map[string]any)
		if len(path) == 1 {
			delete(fields, at.name)
		} else if inner, ok := fields[at.name]; ok {
			remove(inner, path[1:])
		}
	}
}
