// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"fmt"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Direction selects the sides on which a type is defined.
type Direction string

const (
	// None leaves a type unchanged.
	None Direction = "None"
	// Pull defines upstream the types that targets serve.
	Pull Direction = "Pull"
	// Push defines in targets the types that are defined upstream.
	Push Direction = "Push"
	// Both pulls and pushes. It also pushes pulled types to the targets that lack them.
	Both Direction = "Both"
)

// Rule sets the direction for some types.
type Rule struct {
	// Group is the types' group. "*" is every group, "" the core group.
	Group string
	// Resource is the plural name. "*" is every resource.
	Resource string
	// Direction is where definitions are created. Empty means None.
	Direction Direction
	// Remove deletes a definition that this package created, once it has no objects and no other side serves or defines
	// the type any longer.
	Remove bool
}

// Policy is a list of rules. The first rule that matches a type applies. A type that no rule matches is left
// unchanged.
type Policy []Rule

func (p Policy) rule(gr runtimeschema.GroupResource) Rule {
	for _, r := range p {
		if (r.Group == "*" || r.Group == gr.Group) && (r.Resource == "*" || r.Resource == gr.Resource) {
			return r
		}
	}
	return Rule{}
}

func (p Policy) validate() error {
	for i, r := range p {
		switch r.Direction {
		case "", None, Pull, Push, Both:
		default:
			return fmt.Errorf("Policy[%d].Direction is %q: want None, Pull, Push or Both", i, r.Direction)
		}
		if r.Resource == "" {
			return fmt.Errorf(`Policy[%d].Resource is empty: want a plural name or "*"`, i)
		}
	}
	return nil
}

func (r Rule) pulls() bool  { return r.Direction == Pull || r.Direction == Both }
func (r Rule) pushes() bool { return r.Direction == Push || r.Direction == Both }
