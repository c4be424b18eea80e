// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func fault(kind Kind, loop string) Plan { return Plan{{Kind: kind, At: Point{Loop: loop}}} }

func TestShrinkLeavesOutWhatIsNotNeeded(t *testing.T) {
	a, b, c := fault(CrashBefore, "a"), fault(CrashAfter, "b"), fault(WatchCut, "c")
	needs := func(needed ...Plan) func(Plan) bool {
		return func(p Plan) bool {
			return !slices.ContainsFunc(needed, func(n Plan) bool { return !slices.Contains(p, n[0]) })
		}
	}
	whole := slices.Concat(a, b, c)
	require.Equal(t, b, shrink(whole, needs(b)))
	require.Equal(t, slices.Concat(a, c), shrink(whole, needs(c, a)))
	require.Equal(t, whole, shrink(whole, needs(a, b, c)))
	require.Equal(t, a, shrink(a, needs()), "one is left")
	require.Len(t, whole, 3, "shrink does not modify its plan")
}

// Two of the plans have a kind of fault or a loop that no other plan has. sample takes both before it
// takes further plans with the common kind and loop. sample with n = 0 takes all plans.
func TestSampleSpreads(t *testing.T) {
	var plans []Plan
	for range 50 {
		plans = append(plans, fault(CrashBefore, "a"))
	}
	plans = append(plans, fault(CrashAfter, "a"), fault(CrashBefore, "b"))
	taken := sample(plans, 4, rand.New(rand.NewPCG(1, 1)))
	require.Len(t, taken, 4)
	for _, p := range []Plan{fault(CrashAfter, "a"), fault(CrashBefore, "b")} {
		require.Contains(t, taken, p)
	}
	require.Len(t, sample(plans, 0, nil), len(plans), "0 is all of them")
}

func TestSourceIsAPlan(t *testing.T) {
	p := Plan{
		{Kind: Restore, At: Point{Loop: "a", Server: "up", Verb: "patch", Resource: "pods", Subresource: "status", Namespace: "n", Name: "o", N: 2}, Step: 3},
		{Kind: EditBefore, At: Point{Loop: "a", Server: "up", Verb: "create", Resource: "pods", N: 1}, Of: Object{"up", "pods", "", "x"}},
		{Kind: Twice, At: Point{Loop: "b"}},
	}
	require.Equal(t, `perturb.Plan{
	{Kind: perturb.Restore, At: perturb.Point{Loop: "a", Server: "up", Verb: "patch", Resource: "pods", Subresource: "status", Namespace: "n", Name: "o", N: 2}, Step: 3},
	{Kind: perturb.EditBefore, At: perturb.Point{Loop: "a", Server: "up", Verb: "create", Resource: "pods", N: 1}, Of: perturb.Object{Server: "up", Resource: "pods", Name: "x"}},
	{Kind: perturb.Twice, At: perturb.Point{Loop: "b"}},
}`, p.Source())
}
