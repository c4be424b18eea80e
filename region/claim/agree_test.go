// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// TestTwoRulingsComeToRest checks that two arbiters stop writing, whatever their rulings, if at
// most one is firm and each reconciles the claim after the other's write.
func TestTwoRulingsComeToRest(t *testing.T) {
	t.Parallel()
	const held, other = "held", "other"
	decisions := []decision{
		{peer: "us", uid: held, since: noon}, {peer: "eu", uid: other, since: noon}, {peer: "eu", uid: other, since: noon.Add(time.Hour)},
	}
	var rulings []ruling
	for _, firm := range []bool{false, true} {
		for _, d := range decisions {
			rulings = append(rulings, ruling{decision: d, firm: firm})
		}
		for _, undecided := range []string{notDecided, noPlane} {
			rulings = append(rulings, ruling{undecided: undecided, firm: firm}, ruling{undecided: undecided, unreachable: true, firm: firm})
		}
	}
	for _, one := range rulings {
		for _, two := range rulings {
			if one.firm && two.firm {
				continue // both see the same state
			}
			for _, before := range append([]ruling{{}}, rulings...) {
				for _, leaves := range []bool{false, true} {
					obj := claimWithReport(t, before, leaves)
					var mine [2]*report
					writes := 0
					for quiet := 0; quiet < 2; {
						for i, r := range []ruling{one, two} {
							s, ok := reportOn(obj, r, mine[i], noon)
							if !ok || s.matches(statusIn(obj)) {
								quiet++
								continue
							}
							quiet = 0
							writes++
							mine[i] = &s
							store(t, obj, s)
						}
						require.LessOrEqual(t, writes, 3, "%+v and %+v after %+v, deleted: %v", one, two, before, leaves)
					}
				}
			}
		}
	}
}

// TestWhoIsNotFirmTellsWhatIsNew checks that an arbiter that is not firm reports on a claim whose
// generation or deletion has no report yet.
func TestWhoIsNotFirmTellsWhatIsNew(t *testing.T) {
	t.Parallel()
	elsewhere := ruling{decision: decision{peer: "eu", uid: "other", since: noon}}
	obj := claimWithReport(t, elsewhere, false)
	for _, r := range []ruling{{undecided: noPlane}, {decision: decision{peer: "us", uid: "held", since: noon}}} {
		_, ok := reportOn(obj, r, nil, noon)
		require.False(t, ok)
	}
	obj.SetGeneration(2)
	s, ok := reportOn(obj, ruling{decision: decision{peer: "us", uid: "held", since: noon}}, nil, noon)
	require.True(t, ok, "the generation has no report yet")
	require.EqualValues(t, 2, s.ObservedGeneration)

	s, ok = reportOn(claimWithReport(t, elsewhere, true), ruling{undecided: noPlane}, nil, noon)
	require.True(t, ok, "the deletion is new")
	require.Equal(t, string(v1alpha1.RegionClaimReasonRemoving), s.Conditions[0].Reason)
}

// TestACopyOfWhoDoesNotAnswerIsNotFirm checks that a ruling from an unsynced cache is not firm,
// with and without the fan-out protocol.
func TestACopyOfWhoDoesNotAnswerIsNotFirm(t *testing.T) {
	t.Parallel()
	for at, firm := range map[contact]bool{fresh: true, silent: false, awaited: false} {
		contacts := map[region.PeerName]contact{"eu": fresh, "us": at}
		committed := claimWithReport(t, ruling{}, false)
		require.NoError(t, unstructured.SetNestedMap(committed.Object, fanoutOf("us", "Primary", "Configured"), "spec", "fanout"))
		r := settledByProtocol([]standing{{peer: "us", contact: at, claim: committed}}, contacts)
		require.EqualValues(t, "held", r.decision.uid)
		require.Equal(t, firm, r.firm)

		applied := claimWithReport(t, ruling{decision: decision{peer: "us", uid: "held", since: noon}}, false)
		a, err := New(nil, region.Fixed(), Options{})
		require.NoError(t, err)
		r, _, err = a.contest(t.Context(), &regionState{
			key: usEast1, contacts: contacts, places: []peerState{{peer: &peer{name: "us"}, contact: at, claim: applied}},
		}, ruling{}, noon)
		require.NoError(t, err)
		require.EqualValues(t, "held", r.decision.uid)
		require.Equal(t, firm, r.firm)
	}
}

// TestWhatIsAContradiction checks which replacements count as contradictions and how long the
// pauses are. A stale cache does not count, nor does the status of another claim with the same
// name.
func TestWhatIsAContradiction(t *testing.T) {
	t.Parallel()
	says := func(obj *unstructured.Unstructured, r ruling) *report {
		s, ok := reportOn(obj, r, nil, noon)
		require.True(t, ok)
		return &s
	}
	var all statementRecords
	correct := func(obj *unstructured.Unstructured, s statement, at time.Time, wait time.Duration, count int) {
		t.Helper()
		gotWait, gotCount, err := all.correct(usEast1, obj, s, at)
		require.NoError(t, err)
		require.Equal(t, wait, gotWait)
		require.Equal(t, count, gotCount)
	}
	obj := claimWithReport(t, ruling{}, false)
	obj.SetResourceVersion("5")
	bound := says(obj, ruling{decision: decision{peer: "us", uid: "held", since: noon}, firm: true})
	all.record(usEast1, obj, bound)
	correct(obj, bound, noon, 0, 0)
	correct(obj, bound, noon, 0, 0)
	obj.SetResourceVersion("7")
	correct(obj, bound, noon, 0, 1)
	correct(obj, bound, noon, time.Second, 0)
	obj.SetResourceVersion("9")
	correct(obj, bound, noon, time.Second, 2)
	correct(obj, bound, noon.Add(time.Second), 0, 0)
	correct(obj, bound, noon.Add(time.Second), 2*time.Second, 0)

	// The same report again does not shorten the pause. A new one is written at once and resets the
	// pause.
	all.record(usEast1, obj, bound)
	obj.SetResourceVersion("11")
	correct(obj, bound, noon.Add(time.Second), 2*time.Second, 3)
	later := says(obj, ruling{decision: decision{peer: "us", uid: "held", since: noon.Add(time.Hour)}, firm: true})
	correct(obj, later, noon.Add(time.Second), 0, 0)
	all.record(usEast1, obj, later)
	obj.SetResourceVersion("13")
	correct(obj, later, noon.Add(time.Second), 0, 1)
	correct(obj, later, noon.Add(time.Second), time.Second, 0)
	require.Equal(t, later, all.report(usEast1, obj))

	obj.SetUID("another")
	require.Nil(t, all.report(usEast1, obj))
	correct(obj, later, noon.Add(time.Second), 0, 0)
	all.record(usEast1, obj, later)
	obj.SetResourceVersion("15")
	correct(obj, later, noon.Add(time.Second), 0, 1)
	correct(obj, later, noon.Add(time.Second+maxPause), 0, 0)
	correct(obj, later, noon.Add(time.Second+maxPause), 2*time.Second, 0)
	correct(obj, later, noon.Add(4*time.Second+2*maxPause), 0, 0)
	correct(obj, later, noon.Add(4*time.Second+2*maxPause), time.Second, 0)
}

// claimWithReport returns a claim with the report of a ruling, if the ruling is not empty. If
// leaves is true, the claim is being deleted.
func claimWithReport(t *testing.T, r ruling, leaves bool) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetNamespace(provider)
	obj.SetName(name)
	obj.SetUID("held")
	obj.SetGeneration(1)
	if r != (ruling{}) {
		if s, ok := reportOn(obj, r, nil, noon); ok {
			store(t, obj, s)
		}
	}
	if leaves {
		obj.SetDeletionTimestamp(&metav1.Time{Time: noon})
	}
	return obj
}

// store sets the status of obj as an API server does after an apply.
func store(t *testing.T, obj *unstructured.Unstructured, s report) {
	t.Helper()
	desired, err := identified(obj, &s)
	require.NoError(t, err)
	obj.Object["status"] = desired.Object["status"]
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: FieldManager, FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:phase":{},"f:holder":{"f:peer":{},"f:since":{}}}}`),
	}})
}
