// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/validity"
	"github.com/atoll-dev/atoll/region"
)

var pasted = commands{program: "atollctl", peers: " --config p.yaml", log: " --wal w.db"}

// short returns the parts of findings that tables compare.
func short(findings ...finding) (all []string) {
	for _, f := range findings {
		all = append(all, fmt.Sprintf("%s %s %d: %s | %s", f.check, f.status, f.code, f.detail, f.remedy))
	}
	return all
}

func TestJudgeReach(t *testing.T) {
	unauthorized := &region.Error{Peer: "eu", Op: "GET", Err: apierrors.NewUnauthorized("Unauthorized")}
	require.Equal(t, []string{
		"Reachable OK 0: https://eu answers | ",
		"Reachable Failed 2: credentials rejected: Unauthorized | renew the credentials in the kubeconfig",
		"Reachable Failed 4: strange | ",
	}, short(judgeReach("https://eu", nil), judgeReach("", unauthorized), judgeReach("", errors.New("strange"))))
}

func TestJudgeIdentity(t *testing.T) {
	id := func(problem error) fanout.PeerIdentity { return fanout.PeerIdentity{UID: "u", Problem: problem} }
	wrap := func(err error) error { return &region.Error{Peer: "eu", Op: "identify", Err: err} }
	returned := &fanout.ReturnedError{Peer: "eu", Epoch: 1, Noted: 5, By: []region.PeerName{"us"}}
	require.Equal(t, []string{
		"Identity OK 0: cluster u | ",
		"Identity OK 0: the user may not read the UID of the cluster; the ID of its ring identifies it | ",
		"Identity Unknown 4: server error: down | check the API server's log and its storage",
		"Identity Failed 2: WrongCluster: " + fanout.ErrWrongPeer.Error() + " | correct the kubeconfig of the peer, or its name",
		"Identity Failed 2: SameCluster: " + region.ErrSameCluster.Error() + " | name each cluster once",
		"Identity Failed 2: Restored: " + returned.Error() + " | atollctl peer comeback eu --config p.yaml --wal w.db",
		"Identity Failed 2: IdentityUnknown: " + region.ErrIdentityUnknown.Error() + " | atollctl rbac | kubectl apply -f -",
	}, short(
		judgeIdentity("eu", id(nil), nil, pasted),
		judgeIdentity("eu", fanout.PeerIdentity{}, nil, pasted),
		judgeIdentity("eu", id(nil), wrap(apierrors.NewServiceUnavailable("down")), pasted),
		judgeIdentity("eu", id(wrap(fanout.ErrWrongPeer)), nil, pasted),
		judgeIdentity("eu", id(wrap(region.ErrSameCluster)), errors.New("no PeerSet"), pasted),
		judgeIdentity("eu", id(wrap(returned)), nil, pasted),
		judgeIdentity("eu", id(wrap(region.ErrIdentityUnknown)), nil, pasted),
	))
}

func TestJudgeRights(t *testing.T) {
	missing := []access{
		{"get", schema.GroupResource{Resource: "namespaces"}, "kube-system"},
		{"create", schema.GroupResource{Group: "a.io", Resource: "as"}, ""},
		{"get", schema.GroupResource{Group: "a.io", Resource: "as"}, ""},
	}
	f := judgeRights(missing, nil, pasted)
	require.Equal(t, statusFailed, f.status)
	require.Equal(t, exitInput, f.code)
	require.Contains(t, f.detail, "the user lacks get of namespaces kube-system; create, get of as.a.io:")
	require.Equal(t, "atollctl rbac | kubectl apply -f -", f.remedy)
	require.Equal(t, statusOK, judgeRights(nil, nil, pasted).status)
	require.Equal(t, statusUnknown, judgeRights(nil, errors.New("down"), pasted).status)
	require.Contains(t, leastAccess(), access{"patch", schema.GroupResource{Group: "catalog.kubecarrier.io", Resource: "accounts/status"}, ""})
}

func TestJudgeTypes(t *testing.T) {
	found := judgeTypes(installedTypes{crds: map[string]*unstructured.Unstructured{}}, nil, pasted)
	require.Len(t, found, 1)
	require.Equal(t, "atollctl install-crds --config p.yaml", found[0].remedy)
}

func TestJudgeVersion(t *testing.T) {
	for version, want := range map[string]status{
		"v1.30.0": statusOK, "v1.36.2-eks-1a": statusOK, "v2.0.0": statusOK, "v1.29.15": statusFailed, "": statusUnknown, "banana": statusUnknown,
	} {
		require.Equal(t, want, judgeVersion(banner{version: version}, nil).status, version)
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	require.Equal(t, exitInput, judgeVersion(banner{refused: forbidden}, nil).code)
	require.Equal(t, exitDoubt, judgeVersion(banner{}, errors.New("down")).code)
	page, err := os.ReadFile("../../../../README.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "| Kubernetes API servers | "+oldestKubernetes+" ")
}

func TestJudgeClock(t *testing.T) {
	began := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		date string
		trip time.Duration
		want status
	}{
		{"Thu, 01 Jan 2026 12:00:00 GMT", time.Millisecond, statusOK},
		{"Thu, 01 Jan 2026 12:00:05 GMT", time.Millisecond, statusOK},
		{"Thu, 01 Jan 2026 12:00:06 GMT", time.Millisecond, statusWarning},
		{"Thu, 01 Jan 2026 11:59:54 GMT", 10 * time.Millisecond, statusOK}, // until 11:59:55
		{"Thu, 01 Jan 2026 11:59:53 GMT", time.Millisecond, statusWarning},
		{"Thu, 01 Jan 2026 12:00:12 GMT", 8 * time.Second, statusOK}, // the response may be of any time in the round trip
		{"Thu, 01 Jan 2026 12:00:14 GMT", 8 * time.Second, statusWarning},
		{"", time.Millisecond, statusWarning},
	} {
		got := judgeClock(banner{date: tt.date, began: began, ended: began.Add(tt.trip)}, nil)
		require.Equal(t, tt.want, got.status, "%s after %s: %s", tt.date, tt.trip, got.detail)
	}
	require.Equal(t, statusUnknown, judgeClock(banner{}, errors.New("down")).status)
}

func TestJudgeTerm(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		kind validity.Kind
		left time.Duration
		want status
	}{
		{validity.Certificate, 7 * 24 * time.Hour, statusOK}, {validity.Certificate, 7*24*time.Hour - time.Second, statusWarning}, {validity.Certificate, 0, statusFailed},
		{serverCertificate, time.Hour, statusWarning}, {serverCertificate, -time.Hour, statusFailed},
		{validity.Token, 10 * time.Minute, statusOK}, {validity.Token, 9 * time.Minute, statusWarning}, {validity.Token, -time.Second, statusFailed},
	} {
		require.Equal(t, tt.want, judgeTerm(validity.Term{Kind: tt.kind, To: now.Add(tt.left)}, now).status, "%s %s", tt.kind, tt.left)
	}
	require.Equal(t, statusOK, judgeTerm(validity.Term{Kind: validity.Token}, now).status)
	require.Equal(t, statusOK, judgeTerm(validity.Term{Kind: validity.Plugin}, now).status)
}

func TestJudgeSet(t *testing.T) {
	set := func(state fanoutv1alpha1.PeerState, change *fanoutv1alpha1.Change, members ...string) *fanoutv1alpha1.PeerSet {
		s := &fanoutv1alpha1.PeerSet{}
		s.Spec.Self.State, s.Spec.Change = state, change
		for _, m := range members {
			s.Spec.Members = append(s.Spec.Members, fanoutv1alpha1.Member{Peer: m})
		}
		return s
	}
	both := []string{"eu", "us"}
	join := &fanoutv1alpha1.Change{ID: "1", Kind: "Join", Peer: "us"}
	force := &fanoutv1alpha1.Change{ID: "1", Kind: "ForceRemove", Peer: "us", By: "alice b", Coordinator: "host/1"}
	for name, tt := range map[string]struct {
		m    membership
		want []string
	}{
		"member":   {membership{set: set("Active", nil, "us", "eu")}, []string{"PeerSet OK 0: Active; members eu, us | "}},
		"no ring":  {membership{}, []string{"PeerSet Failed 2: it has no PeerSet, so nothing can be added | atollctl peer init --config p.yaml"}},
		"outside":  {membership{ring: true}, []string{"PeerSet Warning 0: it has no PeerSet, so it is no member of the ring of the other peers | atollctl peer join eu --config p.yaml --wal w.db"}},
		"unnamed":  {membership{set: set("Active", nil, "ap", "eu", "us")}, []string{"PeerSet Failed 2: members that are not configured: ap | name all members of the ring with --config, --kubeconfig or --context"}},
		"differs":  {membership{set: set("Active", nil, "eu")}, []string{"PeerSet Warning 0: us is configured, and no member according to this PeerSet | atollctl peer join us --config p.yaml --wal w.db"}},
		"not yet":  {membership{set: set("Active", nil, "eu"), outside: []string{"us"}}, []string{"PeerSet OK 0: Active; members eu | "}},
		"out":      {membership{set: set("Out", nil, "us"), outside: []string{"eu"}}, []string{"PeerSet Warning 0: the peer is Out, and no change is under way | atollctl peer join eu --config p.yaml --wal w.db"}},
		"restored": {membership{set: set("Quarantined", nil, both...)}, []string{"PeerSet Warning 0: the peer is Quarantined, and no change is under way | atollctl peer comeback eu --config p.yaml --wal w.db"}},
		"leaving":  {membership{set: set("Leaving", nil, both...)}, []string{"PeerSet Warning 0: the peer is Leaving, and no change is under way | atollctl peer leave eu --config p.yaml --wal w.db"}},
		"change":   {membership{set: set("Active", join, both...)}, []string{"PeerSet Warning 0: the peer is Active; Join of us by - is under way | wait until it is done"}},
		"stuck":    {membership{set: set("Active", join, both...), still: true}, []string{"PeerSet Failed 4: the peer is Active; Join of us by - showed no sign of life for a lease: the same command finishes it | atollctl peer join us --config p.yaml --wal w.db"}},
		"force": {membership{set: set("Active", force, both...), still: true}, []string{"PeerSet Failed 4: the peer is Active; ForceRemove of us by host/1 showed no sign of life for a lease: the same command finishes it | " +
			"atollctl peer force-remove us --by 'alice b' --i-know-it-never-returns --config p.yaml --wal w.db"}},
	} {
		tt.m.peer, tt.m.configured = "eu", both
		require.Equal(t, tt.want, short(judgeSet(tt.m, nil, pasted)...), name)
	}
	require.Equal(t, statusUnknown, judgeSet(membership{}, errors.New("down"), pasted)[0].status)
	forbidden := judgeSet(membership{}, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")), pasted)[0]
	require.Equal(t, exitInput, forbidden.code)
	require.Equal(t, "atollctl rbac | kubectl apply -f -", forbidden.remedy)
}

func TestStillChanges(t *testing.T) {
	type sets = map[string]*fanoutv1alpha1.PeerSet
	set := func(id string, heartbeat int64) *fanoutv1alpha1.PeerSet {
		s := &fanoutv1alpha1.PeerSet{}
		if id != "" {
			s.Spec.Change = &fanoutv1alpha1.Change{ID: id, Heartbeat: heartbeat}
		}
		return s
	}
	require.Equal(t, map[string]bool{"a": true}, stillChanges(sets{"eu": set("a", 1), "us": set("", 0)}, sets{"eu": set("a", 1), "us": set("", 0)}))
	require.Empty(t, stillChanges(sets{"eu": set("a", 1), "us": set("a", 1)}, sets{"eu": set("a", 1), "us": set("a", 2)}), "a sign of life in one peer")
	require.Empty(t, stillChanges(sets{"eu": set("a", 1)}, sets{"eu": set("", 0)}), "the change has ended")
	require.Empty(t, stillChanges(sets{"eu": set("a", 1)}, sets{}), "the second read failed")
	anchored := set("a", 1)
	anchored.Spec.Change.Anchor = "ap"
	require.Empty(t, stillChanges(sets{"eu": anchored}, sets{"eu": anchored}), "the anchor was not read")
	require.Len(t, stillChanges(sets{"eu": anchored, "ap": set("", 0)}, sets{"eu": anchored}), 1, "the anchor has ended the change")
}

func TestVerdict(t *testing.T) {
	require.NoError(t, verdict([]finding{passed(checkReach, "x"), warned(checkClock, "y", "z")}))
	of := func(peer string, f finding) finding {
		f.peer = peer
		return f
	}
	err := verdict([]finding{
		of("ap", unknown(checkTypes, errors.New("down"))), of("eu", failed(checkRights, "grant", "a")), of("us", failed(checkRights, "grant", "b")), of("us", failed(checkExpiry, "renew", "c")),
	})
	p, ok := find[*problem](err)
	require.True(t, ok)
	require.Equal(t, exitInput, p.code)
	require.Equal(t, "grant; renew", p.remedy)
	require.EqualError(t, err, "checks failed: Types of ap; Rights of eu, us; Expiry of us")
}

// A remedy can be pasted into a shell.
func TestCommands(t *testing.T) {
	s := &session{program: "kubectl atoll", kubeconfigs: []string{"eu=/a b/c's"}, contexts: []string{"us"}, wal: "w.db"}
	require.Equal(t, `kubectl atoll peer join eu --kubeconfig 'eu=/a b/c'\''s' --context us --wal w.db`, s.commands().changing("peer", "join", "eu"))
	require.Equal(t, "atollctl peers", (&session{program: "atollctl"}).commands().reading("peers"))
}
