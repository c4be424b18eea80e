// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/internal/docpage"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

func drawCandidate(t *rapid.T) candidate {
	c := candidate{
		peer: rapid.SampledFrom([]region.PeerName{"eu", "us", "ap"}).Draw(t, "peer"), cluster: rapid.SampledFrom([]types.UID{"1", "2"}).Draw(t, "cluster"),
		contact: rapid.SampledFrom([]contact{awaited, fresh, fresh, silent}).Draw(t, "contact"), uid: rapid.SampledFrom([]types.UID{"A", "B", "C"}).Draw(t, "uid"),
		created: time.Unix(rapid.Int64Range(0, 2).Draw(t, "created"), 0), leaving: rapid.IntRange(0, 3).Draw(t, "leaving") == 0,
	}
	if rapid.IntRange(0, 2).Draw(t, "says bound") == 0 {
		c.bound = time.Unix(rapid.Int64Range(1, 3).Draw(t, "bound"), 0)
	}
	return c
}

// The test draws the claims for one region and a recorded decision, calls decide and carries out
// its verdicts. After at most two verdicts, decide changes nothing further. If no peer is awaited
// and settled is true, a claim that could hold the region is then not left without a holder. If the
// holder's peer is fresh and some claim could hold the region, the holder's claim exists.
func TestStatesOfRegions(t *testing.T) {
	most, states := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		states++
		v := view{
			holder: rapid.SampledFrom([]contact{awaited, fresh, silent}).Draw(t, "holder"), left: rapid.Bool().Draw(t, "left"), departed: rapid.Bool().Draw(t, "departed"),
			awaiting: rapid.IntRange(0, 3).Draw(t, "awaiting") == 0, settled: rapid.IntRange(0, 3).Draw(t, "settled") > 0,
		}
		for range rapid.IntRange(0, 4).Draw(t, "claims") {
			v.candidates = append(v.candidates, drawCandidate(t))
		}
		if rapid.Bool().Draw(t, "decided") {
			v.decision = decision{peer: rapid.SampledFrom([]region.PeerName{"eu", "us", "gone"}).Draw(t, "of"), uid: rapid.SampledFrom([]types.UID{"A", "B", "X"}).Draw(t, "of uid"), since: noon}
		}
		for step := 1; ; step++ {
			require.Less(t, step, 4, "no rest")
			verdict := decide(v)
			if verdict.act == keep || verdict.act == wait {
				most = max(most, step)
				break
			}
			v.decision, v.left, v.departed, v.holder = decision{}, false, false, fresh
			if w := verdict.winner; verdict.act == grant {
				v.decision, v.holder = decision{peer: w.peer, uid: w.uid, since: noon}, w.contact
			}
		}
		if d := v.decision; !d.none() && !v.left && v.holder == fresh && !v.awaiting && v.settled {
			found, ok := v.find(d.uid)
			if _, any := v.choose(); any {
				require.True(t, ok && found.peer == d.peer, "%v holds the region, and is not there", d)
			}
		}
		if v.decision.none() && !v.awaiting && v.settled {
			_, any := v.choose()
			require.False(t, any, "a claim could hold the region, and none does")
		}
	})
	if !t.Failed() {
		docpage.Section(t, "states.md", "claims", fmt.Sprintf("- claims: %d states of a region, its claims and its decision, and as many of one claim's status; at most %d decisions until one changes nothing\n", states, most))
	}
}

// drawClaim returns a RegionClaim with an arbitrary status by an arbitrary writer.
func drawClaim(t *rapid.T) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubecarrier.io/v1alpha1", "kind": "RegionClaim"}}
	obj.SetNamespace("loodse")
	obj.SetName("a")
	obj.SetUID(rapid.SampledFrom([]types.UID{"A", "B"}).Draw(t, "uid"))
	obj.SetGeneration(rapid.Int64Range(1, 3).Draw(t, "generation"))
	if rapid.IntRange(0, 4).Draw(t, "leaving") == 0 {
		obj.SetDeletionTimestamp(new(metav1.NewTime(noon)))
	}
	status := map[string]any{
		"observedGeneration": rapid.SampledFrom([]any{int64(0), int64(1), int64(9), "one"}).Draw(t, "observed"),
		"phase":              rapid.SampledFrom([]any{"", "Bound", "Conflict", "Pending", "Odd", int64(7)}).Draw(t, "phase"),
		"holder":             rapid.SampledFrom([]any{nil, "eu", map[string]any{"peer": "us", "since": "2026-01-01T00:00:00Z"}, map[string]any{"peer": "eu", "since": "then"}}).Draw(t, "holder"),
		"conditions": rapid.SampledFrom([]any{nil, "none", []any{map[string]any{
			"type": "Bound", "status": "False", "reason": "Odd", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}}}).Draw(t, "conditions"),
	}
	obj.Object["status"] = status
	writtenBy(t, obj, rapid.SampledFrom([]string{FieldManager, "somebody"}).Draw(t, "writer"))
	return obj
}

// writtenBy sets managedFields so that manager wrote the phase and the holder.
func writtenBy(t *rapid.T, obj *unstructured.Unstructured, manager string) {
	fields, err := json.Marshal(map[string]any{"f:status": map[string]any{"f:phase": map[string]any{}, "f:holder": map[string]any{"f:peer": map[string]any{}, "f:since": map[string]any{}}}})
	require.NoError(t, err)
	entry := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: obj.GetAPIVersion(), FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{}, Subresource: "status"}
	entry.FieldsV1.SetRawBytes(fields)
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{entry})
}

// The test draws a RegionClaim with an arbitrary status, and a ruling. After the Arbiter's report
// was stored, the next report is equal to it. The reported phase is Bound exactly if the decision
// names the claim and the claim is not being deleted.
func TestStatesOfReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		obj := drawClaim(t)
		r := ruling{firm: rapid.Bool().Draw(t, "firm"), undecided: "it is not decided yet", unreachable: rapid.Bool().Draw(t, "unreachable")}
		if rapid.Bool().Draw(t, "decided") {
			r.decision = decision{peer: "eu", uid: rapid.SampledFrom([]types.UID{"A", "X"}).Draw(t, "of"), since: noon}
		}
		first, ok := reportOn(obj, r, nil, noon)
		if !ok {
			return
		}
		require.Equal(t, r.decision.uid == obj.GetUID() && !leaving(obj), first.Phase == v1alpha1.RegionClaimBound)
		written, err := identified(obj, &first)
		require.NoError(t, err)
		obj.Object["status"] = written.Object["status"]
		writtenBy(t, obj, FieldManager)
		second, ok := reportOn(obj, r, &first, noon.Add(time.Hour))
		require.True(t, ok)
		require.False(t, second.differs(obj))
		require.True(t, second.same(&first), "%+v became %+v", first, second)
	})
}
