// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"fmt"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Direction says where definitions of a type go.
type Direction string

const (
	// None leaves a type alone.
	None Direction = "None"
	// Pull defines upstream what targets serve.
	Pull Direction = "Pull"
	// Push defines in targets what is defined upstream.
	Push Direction = "Push"
	// Both pulls, and pushes to the targets that lack it what was pulled from others.
	Both Direction = "Both"
)

// Rule says what to do with some types.
type Rule struct {
	// Group is the types' group. "*" is every group, "" the core group.
	Group string
	// Resource is the plural name. "*" is every one.
	Resource string
	// Direction says where definitions go. Empty is None.
	Direction Direction
	// Remove removes a definition that was made by this package when nobody serves or defines the type any more and it
	// has no objects.
	Remove bool
}

// Policy is a list of rules, of which the first that names a type counts. A type that none names is left alone.
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
