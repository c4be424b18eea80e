// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// present returns an observation of a peer that has the latest revision, with the given changes
// applied to it.
func present(name string, change ...func(*observation)) observation {
	s := observation{peer: region.PeerName(name), member: fanoutv1alpha1.PeerActive,
		copy: &replica{UID: "u", Stage: fanoutv1alpha1.StageActive, Revision: 2, Digest: "d", Actual: "d", Ready: true, Origin: "wish"}}
	for _, c := range change {
		c(&s)
	}
	return s
}

func TestJudge(t *testing.T) {
	t.Parallel()
	want := wanted{digest: "d", origin: "wish"}
	gone := wanted{digest: "d", origin: "wish", removing: true}
	for name, test := range map[string]struct {
		change func(*observation)
		want   wanted
		reason v1alpha1.AccountConditionReason
		status metav1.ConditionStatus // of the condition Ready
	}{
		"current":             {func(*observation) {}, want, "", metav1.ConditionTrue},
		"silent":              {func(s *observation) { s.err = errors.New("no") }, want, v1alpha1.AccountReasonNoAnswer, metav1.ConditionUnknown},
		"silent without one":  {func(s *observation) { s.err, s.copy = errors.New("no"), nil }, want, v1alpha1.AccountReasonNoAnswer, metav1.ConditionUnknown},
		"missing":             {func(s *observation) { s.copy = nil }, want, v1alpha1.AccountReasonMissing, metav1.ConditionFalse},
		"unclaimed":           {func(s *observation) { s.copy.Stage = "" }, want, v1alpha1.AccountReasonConflict, metav1.ConditionFalse},
		"damaged":             {func(s *observation) { s.copy.Bad = "not JSON" }, want, v1alpha1.AccountReasonConflict, metav1.ConditionFalse},
		"reserved":            {func(s *observation) { s.copy.Stage = fanoutv1alpha1.StageReserved }, want, v1alpha1.AccountReasonBehind, metav1.ConditionFalse},
		"behind":              {func(s *observation) { s.copy.Revision = 1 }, want, v1alpha1.AccountReasonBehind, metav1.ConditionFalse},
		"of another content":  {func(s *observation) { s.copy.Digest = "e" }, want, v1alpha1.AccountReasonBehind, metav1.ConditionFalse},
		"going":               {func(s *observation) { s.copy.Terminating = true }, want, v1alpha1.AccountReasonRemoving, metav1.ConditionFalse},
		"not ready":           {func(s *observation) { s.copy.Ready = false }, want, v1alpha1.AccountReasonNotReady, metav1.ConditionFalse},
		"joining":             {func(s *observation) { s.member, s.copy = fanoutv1alpha1.PeerJoining, nil }, want, v1alpha1.AccountReasonNoMember, metav1.ConditionTrue},
		"joining and silent":  {func(s *observation) { s.member, s.err = "", errors.New("no") }, want, v1alpha1.AccountReasonNoMember, metav1.ConditionTrue},
		"to be removed":       {func(*observation) {}, gone, v1alpha1.AccountReasonRemoving, metav1.ConditionFalse},
		"removed":             {func(s *observation) { s.copy = nil }, gone, "", metav1.ConditionFalse},
		"another's":           {func(s *observation) { s.copy.Origin = "other" }, gone, "", metav1.ConditionFalse},
		"removed, not proved": {func(s *observation) { s.err, s.copy = errors.New("no"), nil }, gone, v1alpha1.AccountReasonNoAnswer, metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := present("home", func(s *observation) { s.copy.Home = true })
			p := presence(loop.ParseKey("acme"), []observation{home, present("peer", test.change)}, test.want)
			var reason v1alpha1.AccountConditionReason
			for _, e := range p.Exceptions {
				if e.Peer == "peer" {
					reason = e.Reason
				}
			}
			require.Equal(t, test.reason, reason)
			conditions := p.conditions(7)
			ready := meta.FindStatusCondition(conditions, "Ready")
			require.Equal(t, test.status, ready.Status, ready.Message)
			require.Equal(t, test.status == metav1.ConditionTrue, p.phase() == v1alpha1.AccountReady)
			require.Equal(t, p.Complete(), p.phase() == v1alpha1.AccountReady)
			for _, c := range conditions {
				require.NotEmpty(t, c.Reason)
				require.NotEmpty(t, c.Message)
				require.Equal(t, int64(7), c.ObservedGeneration)
			}
		})
	}
}

func TestAnEditedHomeIsAnException(t *testing.T) {
	t.Parallel()
	home := present("home", func(s *observation) { s.copy.Home, s.copy.Actual = true, "e" })
	p := presence(loop.ParseKey("acme"), []observation{home}, wanted{digest: "d", origin: "wish"})
	require.Equal(t, v1alpha1.AccountReasonEdited, p.Exceptions[0].Reason)
	require.False(t, p.Complete())
}

func TestNoPeersIsNotReady(t *testing.T) {
	t.Parallel()
	p := presence(loop.ParseKey("acme"), nil, wanted{})
	require.False(t, p.Complete())
	require.Equal(t, metav1.ConditionUnknown, meta.FindStatusCondition(p.conditions(1), "Ready").Status)
}

// thousand returns a thousand peers. The first one has the home. All others are exceptions, most of
// them with long messages.
func thousand() []observation {
	observed := make([]observation, 0, 1000)
	for i := range 1000 {
		observed = append(observed, present(fmt.Sprintf("peer-%03d.%s", i, strings.Repeat("x", 40)), func(s *observation) {
			switch {
			case i == 0:
				s.copy.Home = true
			case i%3 == 0:
				s.err = errors.New(strings.Repeat("a long explanation\n", 100))
			case i%3 == 1:
				s.copy = nil
			default:
				s.copy.Ready, s.copy.NotReady = false, strings.Repeat("words ", 200)
			}
		}))
	}
	return observed
}

// With a thousand peers the status stays small, is valid for the API server, and is the same each
// time.
func TestStatusIsBounded(t *testing.T) {
	t.Parallel()
	server := regiontest.NewServer(regiontest.Options{Definitions: definitions(t)})
	t.Cleanup(server.Close)
	api, err := region.APIFor(server.Config())
	require.NoError(t, err)
	obj, err := api.Dynamic().Resource(resource).Create(t.Context(), newAccount("acme", []any{"Tenant"}), metav1.CreateOptions{})
	require.NoError(t, err)
	r := &Replicator{plane: api, kind: Kind(), opts: Options{Report: reportAccount}, budgets: map[types.NamespacedName]*loop.Budget{}}

	p := presence(loop.ParseKey("acme"), thousand(), wanted{digest: "d", origin: "wish"})
	require.Equal(t, 1000, p.Total)
	require.Len(t, p.Exceptions, 999)
	require.NoError(t, r.report(t.Context(), obj, p))
	now := get(t, api, resource, "", "acme")
	text, err := json.Marshal(now.Object["status"])
	require.NoError(t, err)
	require.Less(t, len(text), 48<<10)
	var status v1alpha1.AccountStatus
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(now.Object["status"].(map[string]any), &status))
	require.Len(t, status.Conditions, 2+maxExceptions)
	require.Len(t, status.Peers.Missing, maxExceptions)
	require.Len(t, status.Peers.Unknown, maxExceptions)
	require.Contains(t, condition(status, "Ready").Message, "and 325 more")

	server.Reset()
	require.NoError(t, r.report(t.Context(), now, p))
	require.Zero(t, writesTo(server), "nothing has changed")

	// The conditions of exceptions are removed when all peers are ready.
	var well []observation
	for i := range 1000 {
		well = append(well, present(fmt.Sprintf("peer-%03d", i), func(s *observation) { s.copy.Home = i == 0 }))
	}
	require.NoError(t, r.report(t.Context(), now, presence(loop.ParseKey("acme"), well, wanted{digest: "d", origin: "wish"})))
	account := accountIn(t, api, "acme")
	require.Equal(t, v1alpha1.AccountReady, account.Status.Phase)
	require.Len(t, account.Status.Conditions, 2)
	require.Equal(t, v1alpha1.PeerSummary{Total: 1000, Present: 1000}, account.Status.Peers)
}

// A condition that does not change keeps its transition time.
func TestTransitionTimesAreKept(t *testing.T) {
	t.Parallel()
	obj := newAccount("acme", []any{"Tenant"})
	obj.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "True", "reason": "Complete", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"},
		map[string]any{"type": "NamespaceReady", "status": "True", "reason": "Owned", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"},
		map[string]any{"type": "PresentIn.gone", "status": "False", "reason": "Missing", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"},
	}}
	p := presence(loop.ParseKey("acme"), []observation{present("eu", func(s *observation) { s.copy.Home = true })}, wanted{digest: "d"})
	content, err := reportAccount(obj, p)
	require.NoError(t, err)
	conditions := content["conditions"].([]any)
	require.Len(t, conditions, 2, "conditions of other writers and of peers without an exception are not written")
	for _, c := range conditions {
		if typeOf(c) == "Ready" {
			require.Equal(t, "2020-01-01T00:00:00Z", c.(map[string]any)["lastTransitionTime"])
		}
	}
}

// The test draws arbitrary states of up to 60 peers. No unreachable member counts as present or
// missing, Ready is True exactly if the Presence is Complete, and there are at most maxExceptions
// conditions PresentIn.
func TestPresenceHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var observed []observation
		for i := range rapid.IntRange(0, 60).Draw(t, "peers") {
			s := present(fmt.Sprintf("peer-%02d", i))
			s.member = rapid.SampledFrom([]fanoutv1alpha1.PeerState{"", "Joining", "Active", "Active", "Active", "Leaving", "Quarantined", "Out"}).Draw(t, "member")
			s.copy.Stage = rapid.SampledFrom([]fanoutv1alpha1.Stage{"", "Reserved", "Active", "Active", "Active", "Removing"}).Draw(t, "stage")
			s.copy.Home = i == 0
			s.copy.Revision = rapid.Int64Range(1, 2).Draw(t, "revision")
			s.copy.Digest = rapid.SampledFrom([]string{"d", "d", "d", "e"}).Draw(t, "digest")
			s.copy.Ready = rapid.Bool().Draw(t, "ready")
			if rapid.IntRange(0, 5).Draw(t, "without") == 0 {
				s.copy = nil
			}
			if rapid.IntRange(0, 3).Draw(t, "silent") == 0 {
				s.err = errors.New("no answer")
			}
			observed = append(observed, s)
		}
		want := wanted{digest: "d", origin: "wish", removing: rapid.Bool().Draw(t, "removing")}
		p := presence(loop.ParseKey("acme"), observed, want)
		conditions := p.conditions(1)
		require.LessOrEqual(t, len(conditions), 2+maxExceptions)
		require.LessOrEqual(t, p.Present, p.Total)
		ready := meta.FindStatusCondition(conditions, "Ready")
		require.Equal(t, p.Complete(), ready.Status == metav1.ConditionTrue, "%+v", p)
		fresh := 0
		for _, s := range observed {
			if s.counts() && s.err == nil {
				fresh++
			}
			if s.err != nil && s.counts() {
				require.Contains(t, p.Unknown(), s.peer)
				require.NotContains(t, p.Missing(), s.peer)
				if c := meta.FindStatusCondition(conditions, "PresentIn."+string(s.peer)); c != nil {
					require.Equal(t, metav1.ConditionUnknown, c.Status)
				}
			}
		}
		require.LessOrEqual(t, p.Present, fresh)
		if !want.removing {
			require.Equal(t, p.Total, p.Present+len(p.Missing())+len(p.Unknown()))
		}
	})
}
