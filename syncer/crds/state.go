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
	// Defined means that the side has the definition of this package, and it is up to date.
	Defined Reason = "Defined"
	// Served means that the side serves the type itself, as a built-in or aggregated type.
	Served Reason = "Served"
	// Foreign means that the side has a definition that this package did not create. Its differences are reported.
	Foreign Reason = "Foreign"
	// Incompatible means that no object would be accepted by all sides, that the sides have no version in common, or
	// that their definitions have different scopes or kinds.
	Incompatible Reason = "Incompatible"
	// Narrowing means that the new definition would accept less than the present one, and the type has objects or may
	// have some.
	Narrowing Reason = "Narrowing"
	// Unreadable means that the type's schema could not be read or converted.
	Unreadable Reason = "Unreadable"
	// Refused means that the API server rejected the definition.
	Refused Reason = "Refused"
	// Unknown means that a side did not answer, or that a write of the definition failed and is repeated in the next
	// pass.
	Unknown Reason = "Unknown"
	// Orphaned means that the definition of this package is still present, and no other side serves or defines the
	// type any longer.
	Orphaned Reason = "Orphaned"
	// Removed means that an orphaned definition was removed, or is being removed.
	Removed Reason = "Removed"
)

// Upstream is the side of the API server that is not a target.
const Upstream = "upstream"

// State is the state of one type on one side.
type State struct {
	// Type is the type. It is empty for a side that did not answer at all.
	Type runtimeschema.GroupResource
	// Side is "upstream" or the name of a target.
	Side   string
	Reason Reason
	// Message gives details, for human readers.
	Message string
	// From are the sides from which the definition comes, sorted.
	From []string
	// Differences are the differences between the sides in From, and between these sides and a foreign definition.
	Differences []schema.Difference
}

// Condition returns the state as a condition of type TypeSynced, without a transition time. The status is True if the
// side serves the type itself, or has a definition whose objects all sides accept. It is Unknown if the reason is
// Unknown, and False otherwise.
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

// Observer receives state changes. A nil Observer and nil fields are allowed. Hooks are called synchronously, one after
// the other, and must return quickly.
type Observer struct {
	// Changed is called for each type on a side whose reason or message differs from the last pass, or that is new.
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
