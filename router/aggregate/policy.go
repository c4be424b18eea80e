// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/atoll-dev/atoll/region"
)

// Policy decides how many regions must answer for a list or a get to succeed; see WithPolicy. The zero value is All. A
// region whose API server does not serve the type counts as answered, but a list needs at least one region that returns
// a list, whatever the Policy.
//
// The Policy is a property of a request and not of an API. Only the caller knows whether a list that lacks regions is of
// use: an informer would treat their objects as deleted.
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

// BestEffort uses the regions that answer in time; at least one region must.
func BestEffort() Policy { return Policy{kind: kindBestEffort} }

// Require requires the given regions to answer. The other regions may fail. A region that is not in the Set counts
// as not answered.
func Require(regions ...region.Key) Policy {
	return Policy{kind: kindRequire, required: slices.Clone(regions)}
}

// Quorum requires any n regions to answer, and waits for the remaining regions until their timeout. An n below 1
// counts as 1.
func Quorum(n int) Policy { return Policy{kind: kindQuorum, quorum: max(n, 1)} }

type policyKey struct{}

// WithPolicy returns a context whose lists and gets need the answers that p requires. Without it they need the answers
// of all regions. Do not use the context for an informer. It has no effect on writes and watches: a watch waits for no
// region, and the bookmark that ends its initial events always needs all of them.
func WithPolicy(ctx context.Context, p Policy) context.Context {
	return context.WithValue(ctx, policyKey{}, p)
}

func policyOf(ctx context.Context) Policy {
	p, _ := ctx.Value(policyKey{}).(Policy)
	return p
}

// PartialHeader and PartialParameter are the header and the query parameter by which a client of a server asks for
// lists and gets without the regions that do not answer. Their value is true or false.
const (
	PartialHeader    = "Atoll-Partial"
	PartialParameter = "partial"
)

// PolicyOf returns the Policy that an HTTP request asks for: BestEffort if its PartialHeader or its PartialParameter is
// true, and All otherwise. Other values than true and false are a BadRequest.
func PolicyOf(r *http.Request) (Policy, error) {
	p := All()
	for name, values := range map[string][]string{"header " + PartialHeader: r.Header.Values(PartialHeader), "parameter " + PartialParameter: r.URL.Query()[PartialParameter]} {
		for _, value := range values {
			partial, err := strconv.ParseBool(value)
			if err != nil {
				return All(), apierrors.NewBadRequest(fmt.Sprintf("%s: %q is neither true nor false", name, value))
			}
			if partial {
				p = BestEffort()
			}
		}
	}
	return p, nil
}

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
