// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// singles returns all plans that have one fault, at the writes and events of the undisturbed run reference.
func singles(s *Scenario, reference outcome, restorable map[string]bool, restores []Kind) []Plan {
	var plans []Plan
	add := func(f Fault) { plans = append(plans, Plan{f}) }
	for i := range s.Loops {
		if !s.Loops[i].Single {
			add(Fault{Kind: Twice, At: Point{Loop: s.Loops[i].Name}})
		}
	}
	for _, m := range reference.writes {
		for _, kind := range []Kind{CrashBefore, CrashAfter, LoseRequest, LoseReply, ApplyLate} {
			add(Fault{Kind: kind, At: m.Point})
		}
		for _, kind := range restores {
			if !restorable[m.Server] || len(s.Script) == 0 {
				continue
			}
			add(Fault{Kind: kind, At: m.Point, Step: m.step})
			if m.step > 0 {
				add(Fault{Kind: kind, At: m.Point})
			}
		}
		for _, f := range meddling(m, reference.owned) {
			add(f)
		}
	}
	for _, m := range reference.events {
		for _, kind := range []Kind{WatchLate, WatchCut, WatchGap} {
			add(Fault{Kind: kind, At: m.Point})
		}
	}
	return plans
}

// containers are the resources whose objects contain other objects. No fault deletes them, because their users would
// have to create the content again too.
var containers = []string{"namespaces", "customresourcedefinitions.apiextensions.k8s.io"}

// meddling returns the faults in which another client changes an object just before a write: the written object, and
// those that the script wrote.
func meddling(m moment, owned map[Object]bool) []Fault {
	var faults []Fault
	target := Object{m.Server, m.Resource, m.Namespace, m.Name}
	_, users := owned[target]
	if m.Verb != "create" && m.Name != "" {
		faults = append(faults, Fault{Kind: EditBefore, At: m.Point, Of: target})
		if m.Verb != "delete" && !slices.Contains(containers, m.Resource) {
			faults = append(faults, Fault{Kind: DeleteBefore, At: m.Point, Of: target})
			if users {
				faults = append(faults, Fault{Kind: RemakeBefore, At: m.Point, Of: target})
			}
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(owned), compareObjects) {
		if !owned[of] || of == target || of.Name == "" {
			continue
		}
		faults = append(faults, Fault{Kind: EditBefore, At: m.Point, Of: of})
		if !slices.Contains(containers, of.Resource) {
			faults = append(faults, Fault{Kind: DeleteBefore, At: m.Point, Of: of}, Fault{Kind: RemakeBefore, At: m.Point, Of: of})
		}
	}
	return faults
}

func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// sample takes n of the plans, so that each kind of fault meets each kind of write and event of each loop about equally
// often.
func sample(plans []Plan, n int, random *rand.Rand) []Plan {
	if n <= 0 || len(plans) <= n {
		return plans
	}
	strata := map[string][]Plan{}
	for _, p := range plans {
		f := p[0]
		key := fmt.Sprint(f.Kind, f.At.Loop, f.At.Server, f.At.Verb, f.At.Resource, f.At.Subresource, f.Of.Resource)
		strata[key] = append(strata[key], p)
	}
	names := slices.Sorted(maps.Keys(strata))
	for _, name := range names {
		s := strata[name]
		random.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
	}
	var taken []Plan
	for round := 0; len(taken) < n; round++ {
		for _, name := range names {
			if s := strata[name]; round < len(s) && len(taken) < n {
				taken = append(taken, s[round])
			}
		}
	}
	return taken
}

// pairs returns n plans, each of which joins two random plans. It returns nil if plans has fewer than two plans.
func pairs(plans []Plan, n int, random *rand.Rand) []Plan {
	if len(plans) < 2 {
		return nil
	}
	joined := make([]Plan, n)
	for i := range joined {
		joined[i] = slices.Concat(plans[random.IntN(len(plans))], plans[random.IntN(len(plans))])
	}
	return joined
}

// shrink removes faults from a failing plan while wrong reports that the plan still fails.
func shrink(plan Plan, wrong func(Plan) bool) Plan {
	for i := 0; i < len(plan) && len(plan) > 1; {
		if shorter := slices.Delete(slices.Clone(plan), i, i+1); wrong(shorter) {
			plan, i = shorter, 0
		} else {
			i++
		}
	}
	return plan
}
