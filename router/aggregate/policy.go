// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"fmt"
	"slices"

	"github.com/atoll-dev/atoll/region"
)

// Policy decides how many regions must answer for a read to succeed. The zero value is All. A region whose API server
// does not serve the type counts as answered, but a list needs at least one region that returns a list, whatever the
// Policy.
type Policy struct {
	kind     policyKind
	required []region.Key
	quorum   int
}

type policyKind int

const (
	kindAll policyKind = iota
	kindFailFast
	kindBestEffort
	kindRequire
	kindQuorum
)

// All requires every region to answer.
func All() Policy { return Policy{} }

// FailFast requires every region to answer, like All, but the first failure cancels the remaining requests.
func FailFast() Policy { return Policy{kind: kindFailFast} }

// BestEffort uses the regions that answer in time; at least one region must. Do not use it for informers: they
// treat the objects of a region that does not answer a list as deleted.
func BestEffort() Policy { return Policy{kind: kindBestEffort} }

// Require requires the given regions to answer. The other regions may fail. A region that is not in the Set counts
// as not answered.
func Require(regions ...region.Key) Policy {
	return Policy{kind: kindRequire, required: slices.Clone(regions)}
}

// Quorum requires any n regions to answer, and waits for the remaining regions until their timeout. An n below 1
// counts as 1.
func Quorum(n int) Policy { return Policy{kind: kindQuorum, quorum: max(n, 1)} }

// String returns the name of the policy, as in "quorum of 2".
func (p Policy) String() string {
	switch p.kind {
	case kindFailFast:
		return "fail fast"
	case kindBestEffort:
		return "best effort"
	case kindRequire:
		return fmt.Sprintf("require %v", p.required)
	case kindQuorum:
		return fmt.Sprintf("quorum of %d", p.quorum)
	default:
		return "all"
	}
}

// met reports whether the outcomes satisfy the policy.
func (p Policy) met(outcomes []Outcome) bool {
	answered := make(map[region.Key]bool, len(outcomes))
	for _, o := range outcomes {
		before, ok := answered[o.Region]
		answered[o.Region] = o.State.answered() && (before || !ok)
	}
	n := 0
	for _, ok := range answered {
		if ok {
			n++
		}
	}
	switch p.kind {
	case kindBestEffort:
		return n > 0
	case kindQuorum:
		return n >= p.quorum
	case kindRequire:
		return !slices.ContainsFunc(p.required, func(k region.Key) bool { return !answered[k] })
	default:
		return n > 0 && n == len(answered)
	}
}
