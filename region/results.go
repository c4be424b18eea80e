// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"cmp"
	"slices"
)

// ResultsOf makes Results of outcomes that were collected elsewhere, for calls over many peers that are more than one
// request each. op names the call in errors. The outcomes are sorted by peer; outcomes itself is not modified.
func ResultsOf[T any](op string, outcomes ...Outcome[T]) Results[T] {
	sorted := slices.Clone(outcomes)
	slices.SortStableFunc(sorted, func(a, b Outcome[T]) int { return cmp.Compare(a.Peer, b.Peer) })
	return Results[T]{op: op, outcomes: sorted}
}
