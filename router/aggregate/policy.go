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
	kind      policyKind
	required  []region.Key
	quorum    int
	delivered *Delivered
	query     string // of the list or watch, for delivered; empty: another request
}

type policyKind int

const (
	kindAll policyKind = iota
	kindFailFast
	kindBestEffort
	kindRequire
	kindQuorum
	kindRequireDelivered
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
// of all regions. Do not use the context for an informer, unless the policy is RequireDelivered. Other policies have no
// effect on watches: a watch waits for no region, and the bookmark that ends its initial events needs all of them. No policy
// has an effect on writes.
func WithPolicy(ctx context.Context, p Policy) context.Context {
	return context.WithValue(ctx, policyKey{}, p)
}

func policyOf(ctx context.Context) Policy {
	p, _ := ctx.Value(policyKey{}).(Policy)
	return p
}

// of returns the policy for the lists and watches of q.
func (p Policy) of(q query) Policy {
	p.query = string(fmt.Appendf(nil, "%q %q %q %q %v", q.namespace, q.types, q.labels, q.fields, q.only))
	return p
}

// note remembers the outcomes that the caller of a list or watch gets.
func (p Policy) note(outcomes ...Outcome) {
	if p.delivered != nil {
		p.delivered.note(p.query, outcomes)
	}
}

// initial returns the policy for the bookmark that ends initial events: an informer takes the objects that it has not
// received by then for deleted, so only RequireDelivered may need fewer regions than all.
func (p Policy) initial() Policy {
	if p.kind == kindRequireDelivered {
		return p
	}
	return All()
}

// PartialHeader and PartialParameter are the header and the query parameter by which a client of a server asks for
// lists and gets without the regions that do not answer. Their value is true or false.
const (
	PartialHeader    = "Atoll-Partial"
	PartialParameter = "partial"
)

// PolicyOf returns the Policy that an HTTP request asks for: BestEffort if its PartialHeader or its PartialParameter is
// true, and otherwise that of its context (WithPolicy), or All. Other values than true and false are a BadRequest.
func PolicyOf(r *http.Request) (Policy, error) {
	p := policyOf(r.Context())
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
	case kindRequireDelivered:
		return "require delivered"
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
	if p.kind == kindRequireDelivered && p.query != "" {
		for k, ok := range answered {
			if !ok && p.delivered.has(p.query, k) {
				return false
			}
		}
		return n > 0
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
