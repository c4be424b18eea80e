// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/syncer/schema"
)

// Reason is the outcome for one type on one side.
type Reason string

const (
	// Defined says that the side has our definition, and it is as it should be.
	Defined Reason = "Defined"
	// Served says that the side serves the type by itself, as a built-in or aggregated type.
	Served Reason = "Served"
	// Foreign says that somebody else's definition is there. Its differences are reported.
	Foreign Reason = "Foreign"
	// Incompatible says that no object would be accepted by all, or that they have no version in common.
	Incompatible Reason = "Incompatible"
	// Narrowing says that the definition would have to accept less than it does, and there are objects of it.
	Narrowing Reason = "Narrowing"
	// Unreadable says that the type's schema could not be read or converted.
	Unreadable Reason = "Unreadable"
	// Refused says that the API server refused the definition.
	Refused Reason = "Refused"
	// Unknown says that the side did not answer.
	Unknown Reason = "Unknown"
	// Orphaned says that our definition is there and nobody serves or defines the type any more.
	Orphaned Reason = "Orphaned"
	// Removed says that an orphaned definition was removed.
	Removed Reason = "Removed"
)

// Upstream is the side of the API server that is not a target.
const Upstream = "upstream"

// State is how one type stands on one side.
type State struct {
	// Type is the type. It is empty for a side that did not answer at all.
	Type runtimeschema.GroupResource
	// Side is "upstream" or the name of a target.
	Side   string
	Reason Reason
	// Message says more, for people.
	Message string
	// From are the sides from which the definition comes, sorted.
	From []string
	// Differences say where those sides, and a foreign definition, differ.
	Differences []schema.Difference
}

// Condition returns the state as a condition of type TypeSynced, without a transition time: True if the side has the
// type in a form that all sides accept, Unknown if it did not answer, and False otherwise.
func (s State) Condition() metav1.Condition {
	status := metav1.ConditionFalse
	switch s.Reason {
	case Defined, Served:
		status = metav1.ConditionTrue
	case Unknown:
		status = metav1.ConditionUnknown
	case Foreign:
		if s.Message == "" {
			status = metav1.ConditionTrue
		}
	}
	return metav1.Condition{Type: "TypeSynced", Status: status, Reason: string(s.Reason), Message: s.Message}
}

// Observer is told what happens. A nil Observer and nil fields are fine. Hooks are called synchronously, one after the
// other, and must return quickly.
type Observer struct {
	// Changed is called when a type's reason or message on a side is another than in the pass before.
	Changed func(ctx context.Context, s State)
}

func (o *Observer) changed(ctx context.Context, s State) {
	if o != nil && o.Changed != nil {
		o.Changed(ctx, s)
	}
}

func sortStates(states []State) {
	slices.SortFunc(states, func(a, b State) int {
		return cmp.Or(cmp.Compare(a.Type.Group, b.Type.Group), cmp.Compare(a.Type.Resource, b.Type.Resource), cmp.Compare(a.Side, b.Side))
	})
}
