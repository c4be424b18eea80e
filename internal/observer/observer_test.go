// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package observer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/observer"
)

type observing struct {
	Done func(context.Context, string)
	Lost func(context.Context, string)
}

func TestChain(t *testing.T) {
	var calls []string
	call := func(who string) func(context.Context, string) {
		return func(_ context.Context, e string) { calls = append(calls, who+" "+e) }
	}
	next := &observing{Done: call("next"), Lost: call("next")}
	o := observer.Copy(next)
	o.Done = observer.Chain(call("own"), o.Done)
	o.Done(t.Context(), "done")
	o.Lost(t.Context(), "lost")
	require.Equal(t, []string{"own done", "next done", "next lost"}, calls)

	calls = nil
	next.Done(t.Context(), "done")
	require.Equal(t, []string{"next done"}, calls, "the next Observer is not changed")

	calls = nil
	alone := observer.Copy[observing](nil)
	alone.Done = observer.Chain(call("own"), alone.Done)
	alone.Done(t.Context(), "done")
	require.Nil(t, alone.Lost)
	require.Equal(t, []string{"own done"}, calls)
}
