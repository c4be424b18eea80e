// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/splitter/workload"
)

// Rule defines who owns a field of one type.
type Rule struct {
	// Type is the type that the rule is for.
	Type schema.GroupKind
	// Path is the path of the field: names separated by dots, [*] for each item of a list, ["a.b"] for a name with
	// dots: "spec.clusterIP", "spec.ports[*].nodePort", `metadata.annotations["example.org/node"]`.
	Path string
	// Owner is the side whose value counts. A field of the status belongs to the downstream and goes up, unless a rule
	// makes it Upstream: then it goes down and not up.
	Owner Owner
	// Up writes the downstream value of the field to the upstream too, for people and tools there to see, such as the
	// replicas that an autoscaler has set. It needs an Owner other than Upstream. A FirstWriter field goes up once
	// another client has changed it downstream. A field that a Splitter owns does not go up: the Splitter decides the
	// replicas of a shard.
	Up bool
	// Change is the action if the downstream rejects a change of the field, or of a field below it, because it is
	// immutable.
	Change OnChange
}

// OnChange is the action for a change that the downstream rejects.
type OnChange int

const (
	// Report leaves the downstream object as it is and reports ReasonRefused.
	Report OnChange = iota
	// Recreate deletes the downstream object, with all its dependents, and creates it again. It counts as a deletion
	// (see DeleteCap). The Path of the rule must cover the field that the server names: spec.selector of Deployments,
	// spec.template of Jobs, data of immutable ConfigMaps. For StatefulSets, servers name only spec.
	Recreate
)

// Owner is the side whose value of a field counts.
type Owner int

const (
	// Upstream owns each field without a rule: its value goes down. A change by another client downstream is
	// overwritten and reported.
	Upstream Owner = iota
	// Downstream owns the field: the upstream value is never sent down.
	Downstream
	// FirstWriter lets the value go down until another client changes it downstream, as an autoscaler changes replicas.
	// From then on the field is left to that client. The path must not have [*].
	FirstWriter
)

// builtin are the rules for core types: their fields belong to the cluster in which the object is.
var builtin = []Rule{
	{Type: schema.GroupKind{Kind: "Service"}, Path: "spec.clusterIP", Owner: Downstream},
	{Type: schema.GroupKind{Kind: "Service"}, Path: "spec.clusterIPs", Owner: Downstream},
	{Type: schema.GroupKind{Kind: "Service"}, Path: "spec.healthCheckNodePort", Owner: Downstream},
	{Type: schema.GroupKind{Kind: "Service"}, Path: "spec.ipFamilies", Owner: Downstream},
	{Type: schema.GroupKind{Kind: "Service"}, Path: "spec.ports[*].nodePort", Owner: Downstream},
	{Type: schema.GroupKind{Kind: "PersistentVolumeClaim"}, Path: "spec.volumeName", Owner: Downstream},
	{Type: schema.GroupKind{Kind: "PersistentVolume"}, Path: "spec.claimRef.uid", Owner: Downstream},
	{Type: schema.GroupKind{Kind: "PersistentVolume"}, Path: "spec.claimRef.resourceVersion", Owner: Downstream},
	{Type: schema.GroupKind{Kind: "ServiceAccount"}, Path: "secrets", Owner: Downstream},
	{Type: schema.GroupKind{Kind: "Pod"}, Path: "spec.nodeName", Owner: Downstream},
	{Type: schema.GroupKind{Group: "batch", Kind: "Job"}, Path: "spec.selector", Owner: Downstream},
}

// rules are the rules for one type: at most one per path.
type rules []rule

type rule struct {
	path     []step
	text     string
	owner    Owner
	up       bool
	recreate bool
}

// ofStatus reports whether the rule is for a field of the status.
func (r rule) ofStatus() bool { return r.path[0].name == "status" }

// step leads from a map to a field, or from a list to its items.
type step struct {
	name string
	each bool // all items of a list
}

// declaredRules returns the rules for the replicas of declared types.
func declaredRules(types []*workload.Type) (all []Rule) {
	for _, t := range types {
		if t.Replicas() != nil {
			all = append(all, Rule{Type: t.GroupKind(), Path: string(t.Spec().Replicas), Owner: autoscaled})
		}
	}
	return all
}

// rulesFor returns the rules of a type. Of several rules for one path, it returns the last.
func rulesFor(kind schema.GroupKind, declared, custom []Rule) rules {
	var found rules
	for _, r := range slices.Concat(builtin, declared, custom) {
		if r.Type != kind {
			continue
		}
		path, err := parsePath(r.Path)
		if err != nil {
			continue // New has rejected it
		}
		found = slices.DeleteFunc(found, func(known rule) bool { return slices.Equal(known.path, path) })
		found = append(found, rule{path: path, text: r.Path, owner: r.Owner, up: r.Up, recreate: r.Change == Recreate})
	}
	return found
}

// check returns an error if the rule is invalid.
func (r Rule) check() error {
	path, err := parsePath(r.Path)
	ofItems := slices.ContainsFunc(path, func(s step) bool { return s.each })
	switch {
	case r.Type.Kind == "":
		return errors.New("the Type has no kind")
	case err != nil:
		return fmt.Errorf("the Path %q: %w", r.Path, err)
	case r.Owner < Upstream || r.Owner > FirstWriter:
		return fmt.Errorf("the Owner %d: want Upstream, Downstream or FirstWriter", r.Owner)
	case r.Owner == FirstWriter && ofItems:
		return fmt.Errorf("the Path %q: [*] is not possible with FirstWriter", r.Path)
	case r.Up && ofItems:
		return fmt.Errorf("the Path %q: [*] is not possible with Up", r.Path)
	case r.Up && r.Owner == Upstream:
		return fmt.Errorf("the Path %q: Up needs the Owner Downstream or FirstWriter", r.Path)
	case path[0].name == "status" && (r.Up || r.Owner == FirstWriter || ofItems):
		return fmt.Errorf("the Path %q: of a status there is only Owner Upstream or Downstream, without [*]", r.Path)
	case r.Change < Report || r.Change > Recreate:
		return fmt.Errorf("the Change %d: want Report or Recreate", r.Change)
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

// names returns the names in the path of a rule without [*].
func (r rule) names() []string {
	var names []string
	for _, s := range r.path {
		names = append(names, s.name)
	}
	return names
}

// covers reports whether a field, as a server names it, is at the path of the rule or below.
func (r rule) covers(field string) bool {
	at, err := parsePath(index.ReplaceAllString(field, "[*]"))
	return err == nil && len(at) >= len(r.path) && slices.Equal(at[:len(r.path)], r.path)
}

// index matches an item of a list, as servers name it.
var index = regexp.MustCompile(`\[[0-9]+\]`)

// remove deletes the field at path from v.
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
