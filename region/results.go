// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"errors"
	"iter"
	"slices"
	"time"
)

// Results are the outcomes of one call, by peer name.
type Results[T any] struct {
	op       string
	outcomes []Outcome[T]
}

// Outcome is the result of one peer.
type Outcome[T any] struct {
	Peer    PeerName
	Value   T     // meaningless unless Err is nil
	Err     error // nil or a *Error
	Elapsed time.Duration
}

// ResultsOf makes Results of outcomes that the caller collected itself, for a call that sends more than one request to
// each peer. op names the call in errors. The outcomes are sorted by peer; outcomes itself is not modified.
func ResultsOf[T any](op string, outcomes ...Outcome[T]) Results[T] {
	sorted := slices.Clone(outcomes)
	slices.SortStableFunc(sorted, func(a, b Outcome[T]) int { return compareNames(a.Peer, b.Peer) })
	return Results[T]{op: op, outcomes: sorted}
}

// All yields the outcomes by peer name.
func (r Results[T]) All() iter.Seq[Outcome[T]] { return slices.Values(r.outcomes) }

// Complete reports whether there was a peer and every peer succeeded.
func (r Results[T]) Complete() bool {
	return len(r.outcomes) > 0 && !slices.ContainsFunc(r.outcomes, func(o Outcome[T]) bool { return o.Err != nil })
}

// Err is nil, or a *PartialError of all failures.
func (r Results[T]) Err() error {
	var failed []*Error
	for _, o := range r.outcomes {
		if o.Err == nil {
			continue
		}
		e, ok := errors.AsType[*Error](o.Err)
		if !ok {
			e = &Error{Peer: o.Peer, Op: r.op, Err: o.Err}
		}
		failed = append(failed, e)
	}
	if len(failed) == 0 {
		return nil
	}
	return newPartialError(r.op, len(r.outcomes), failed)
}

func (r Results[T]) met(p Policy) bool {
	answered := 0
	for _, o := range r.outcomes {
		if o.Err == nil {
			answered++
		} else if slices.Contains(p.required, o.Peer) {
			return false
		}
	}
	switch p.kind {
	case kindBestEffort:
		return true
	case kindRequire:
		return len(r.outcomes) > 0
	case kindQuorum:
		return answered >= p.quorum
	default:
		return r.Complete()
	}
}
