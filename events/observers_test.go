// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/servicecluster"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

func TestWhatPeopleSeeOfPeers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e    central.ReadyEvent
		want string
	}{
		"begun":     {central.ReadyEvent{Before: "Unknown", Status: "Unknown", Reason: "Pending"}, ""},
		"ready":     {central.ReadyEvent{Before: "Unknown", Status: "True", Reason: "Reachable"}, "Normal PeerReady"},
		"silent":    {central.ReadyEvent{Before: "True", Status: "False", Reason: "Unreachable"}, "Warning Unreachable"},
		"refused":   {central.ReadyEvent{Before: "Unknown", Status: "False", Reason: "IsMaster"}, "Warning IsMaster"},
		"forgotten": {central.ReadyEvent{Before: "True", Status: "Unknown", Reason: "CRDsMissing"}, "Warning CRDsMissing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireEvent(t, c.want)(ofPeer(c.e))
		})
	}
}

func TestWhatPeopleSeeOfClaims(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, now v1alpha1.RegionClaimPhase
		want        string
	}{
		"new":       {"", "Pending", ""},
		"bound":     {"Pending", "Bound", "Normal Bound"},
		"again":     {"Bound", "Bound", ""},
		"conflict":  {"Pending", "Conflict", "Warning Conflict"},
		"lost":      {"Bound", "Conflict", "Warning Lost"},
		"leaving":   {"Bound", "Pending", "Warning Lost"},
		"released":  {"Conflict", "Pending", ""},
		"hand-over": {"Conflict", "Bound", "Normal Bound"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireEvent(t, c.want)(ofClaim(claim.ReportEvent{Before: c.before, Phase: c.now}))
		})
	}
}

func TestWhatPeopleSeeOfServiceClusters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e    servicecluster.ReportEvent
		want string
	}{
		"new":             {servicecluster.ReportEvent{Ready: "Unknown", Reason: "Pending"}, ""},
		"ready":           {servicecluster.ReportEvent{Before: "Unknown", Ready: "True", Reason: "Complete"}, "Normal ClusterReady"},
		"ready as ever":   {servicecluster.ReportEvent{Before: "True", Ready: "True", Reason: "Complete"}, ""},
		"unreachable":     {servicecluster.ReportEvent{Before: "True", Ready: "False", Reason: "Unreachable"}, "Warning Unreachable"},
		"bad kubeconfig":  {servicecluster.ReportEvent{Before: "Unknown", Ready: "False", Reason: "KubeconfigInvalid"}, "Warning KubeconfigInvalid"},
		"held":            {servicecluster.ReportEvent{Ready: "False", Reason: "Held"}, "Warning Held"},
		"lost its region": {servicecluster.ReportEvent{Before: "True", Ready: "False", Reason: "RegionUnbound"}, "Warning RegionUnbound"},
		"no region yet":   {servicecluster.ReportEvent{Before: "Unknown", Ready: "False", Reason: "RegionUnbound"}, ""},
		"removed":         {servicecluster.ReportEvent{Before: "True", Ready: "False", Reason: "Removing"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireEvent(t, c.want)(ofServiceCluster(c.e))
		})
	}
}

func TestWhatPeopleSeeOfAccounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e    account.ReadyEvent
		want string
	}{
		"new":        {account.ReadyEvent{Status: "False", Reason: "PeersMissing"}, ""},
		"on its way": {account.ReadyEvent{Before: "False", Status: "False", Reason: "PeersNotReady"}, ""},
		"converged":  {account.ReadyEvent{Before: "False", Status: "True", Reason: "Complete"}, "Normal Converged"},
		"exception":  {account.ReadyEvent{Before: "True", Status: "False", Reason: "PeersMissing"}, "Warning PeersMissing"},
		"silence":    {account.ReadyEvent{Before: "True", Status: "Unknown", Reason: "PeersUnknown"}, "Warning PeersUnknown"},
		"waits":      {account.ReadyEvent{Before: "False", Status: "Unknown", Reason: "PeersUnknown"}, "Warning PeersUnknown"},
		"conflict":   {account.ReadyEvent{Status: "False", Reason: "Conflict"}, "Warning Conflict"},
		"removed":    {account.ReadyEvent{Before: "True", Status: "False", Reason: "Removing"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireEvent(t, c.want)(ofAccount(c.e))
		})
	}
	requireEvent(t, "")(ofRepair(account.RepairEvent{}))
	requireEvent(t, "Normal Repaired")(ofRepair(account.RepairEvent{Drifted: true}))
	requireEvent(t, "Warning RepairFailed")(ofRepair(account.RepairEvent{Err: errors.New("refused")}))
}

func requireEvent(t *testing.T, want string) func(Event, bool) {
	t.Helper()
	return func(e Event, ok bool) {
		t.Helper()
		got := ""
		if ok {
			got = string(e.Type) + " " + e.Reason
		}
		require.Equal(t, want, got)
	}
}

// TestObserversPassOn: the Observers of a Recorder call the next Observer, and write each
// Event to the API server of its object.
func TestObserversPassOn(t *testing.T) {
	inStage(t, Options{}, func(t *testing.T, s *stage) {
		ring := regiontest.NewRing("eu")
		t.Cleanup(ring.Close)
		var told []string
		note := func(what string) { told = append(told, what) }
		ctx := t.Context()

		peers := s.r.Peers(s.api, &central.Observer{
			Ready:  func(context.Context, central.ReadyEvent) { note("ready") },
			Master: func(context.Context, central.MasterEvent) { note("master") },
		})
		peers.Ready(ctx, central.ReadyEvent{Peer: "eu", UID: "1", Status: metav1.ConditionTrue})
		peers.Master(ctx, central.MasterEvent{})

		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "loodse"}}}
		conn, err := ring.Conn("eu")
		require.NoError(t, err)
		_, err = conn.Dynamic().Resource(resource.GroupVersion().WithResource("namespaces")).Create(ctx, ns, metav1.CreateOptions{})
		require.NoError(t, err)
		claims := s.r.Claims(ring, &claim.Observer{
			Reported: func(context.Context, claim.ReportEvent) { note("reported") },
			Gated:    func(context.Context, claim.GateEvent) { note("gated") },

			Contradicted: func(context.Context, claim.ContradictEvent) { note("contradicted") },
		})
		claims.Reported(ctx, claim.ReportEvent{
			Region: region.Key{Provider: "loodse", Name: "us-east-1"}, Peer: "eu", UID: "2", Phase: v1alpha1.RegionClaimBound, Message: "peer eu serves it",
		})
		claims.Gated(ctx, claim.GateEvent{})
		claims.Contradicted(ctx, claim.ContradictEvent{Region: region.Key{Provider: "loodse", Name: "us-east-1"}, Peer: "eu", UID: "2", Holder: "eu"})

		clusters := s.r.ServiceClusters(ring, &servicecluster.Observer{
			Reported: func(context.Context, servicecluster.ReportEvent) { note("cluster reported") },
			Probed:   func(context.Context, servicecluster.ProbeEvent) { note("cluster probed") },
		})
		clusters.Reported(ctx, servicecluster.ReportEvent{
			Region: region.Key{Provider: "loodse", Name: "us-east-1"}, Peer: "eu", UID: "5", Ready: metav1.ConditionTrue, Reason: "Complete", Message: "the cluster can be used",
		})
		clusters.Probed(ctx, servicecluster.ProbeEvent{})

		accounts := s.r.Accounts(s.api, ring, &account.Observer{
			Ready:      func(context.Context, account.ReadyEvent) { note("converged") },
			Removed:    func(context.Context, account.RemoveEvent) { note("removed") },
			Repaired:   func(context.Context, account.RepairEvent) { note("repaired") },
			Orphaned:   func(context.Context, account.OrphanEvent) { note("orphaned") },
			Replicated: func(context.Context, account.ReplicateEvent) { note("replicated") },
		})
		acme := account.Object{APIVersion: "catalog.kubecarrier.io/v1alpha1", Kind: "Account", NamespacedName: types.NamespacedName{Name: "acme"}, UID: "3"}
		accounts.Ready(ctx, account.ReadyEvent{Object: acme, Status: metav1.ConditionTrue})
		accounts.Removed(ctx, account.RemoveEvent{Object: acme})
		accounts.Repaired(ctx, account.RepairEvent{Peer: "eu", Account: "acme", UID: "4", Drifted: true})
		accounts.Orphaned(ctx, account.OrphanEvent{Peer: "eu", Object: acme})
		accounts.Orphaned(ctx, account.OrphanEvent{Peer: "nobody", Object: acme})
		accounts.Replicated(ctx, account.ReplicateEvent{})

		require.Equal(t, []string{
			"ready", "master", "reported", "gated", "contradicted", "cluster reported", "cluster probed", "converged", "removed", "repaired", "orphaned", "orphaned", "replicated",
		}, told)
		passes(time.Second)
		reasons := func(api region.API, namespace string) (all []string) {
			list, err := api.Dynamic().Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
			require.NoError(t, err)
			for _, e := range list.Items {
				all = append(all, e.Object["reason"].(string))
			}
			return all
		}
		require.ElementsMatch(t, []string{"PeerReady", "Converged", "Removed"}, reasons(s.api, "default"))
		require.ElementsMatch(t, []string{"Repaired", "Orphaned"}, reasons(conn, "default"))
		require.ElementsMatch(t, []string{"Bound", "Contradicted", "ClusterReady"}, reasons(conn, "loodse"))
		require.EqualValues(t, 1, s.r.Dropped(), "there is no such peer")

		// next may be nil.
		s.r.Peers(s.api, nil).Ready(ctx, central.ReadyEvent{Peer: "us", Status: metav1.ConditionTrue})
		s.r.Claims(ring, nil).Reported(ctx, claim.ReportEvent{})
		s.r.Claims(ring, nil).Contradicted(ctx, claim.ContradictEvent{})
		none := s.r.Accounts(s.api, ring, nil)
		none.Ready(ctx, account.ReadyEvent{})
		none.Removed(ctx, account.RemoveEvent{})
		none.Repaired(ctx, account.RepairEvent{})
		none.Orphaned(ctx, account.OrphanEvent{Peer: "eu"})
	})
}
