// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// inProgress runs an audit, requires that it reports no violation, and returns the findings in
// progress.
func inProgress(t *testing.T, c *fanout.Coordinator) []fanout.Violation {
	t.Helper()
	report, err := c.Audit(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, report.Violations)
	return report.Pending
}

// An add waits for a peer for longer than a lease. Each audit meanwhile reports the add's
// reservation as in progress.
func TestAnAuditBesideAWaitingAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		lease := fanout.Options{LeaseTimeout: 2 * time.Second, CallTimeout: time.Second}
		acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), lease))
		r.Partition("ap-south", true)
		ctx, cancel := withCancel(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := coordinator(t, r, waltest.NewMemory(), lease).Add(ctx, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Unreachable: fanout.Wait})
			require.ErrorIs(t, err, fanout.ErrAborted)
		})
		time.Sleep(5 * time.Second) // in virtual time: the add waits
		for range 3 {
			require.Equal(t, []string{"I6"}, invariants(inProgress(t, coordinator(t, r, waltest.NewMemory(), lease))))
		}
		cancel()
		wg.Wait()
	})
}

// An audit reports a reservation without a sign of life as in progress if the log has its
// operation open, and as a violation if the log does not have the operation. Both texts name the
// command to run.
func TestAnAuditOfAReservationThatStandsStill(t *testing.T) {
	r := newRing(t)
	acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
	id, log := stop(t, r, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"}, "them/1", func(e fanout.StepEvent) bool {
		return e.Verb == "advance"
	})
	pending := inProgress(t, coordinator(t, r, log, fanout.Options{}))
	require.Equal(t, []string{"I6"}, invariants(pending))
	require.Contains(t, pending[0].Text, "atollctl operation resume "+id)

	report, err := coordinator(t, r, waltest.NewMemory(), fanout.Options{}).Audit(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, []string{"I6"}, invariants(report.Violations))
	require.Contains(t, report.Violations[0].Text, "atollctl operation abort "+id+" --others")

	// Now only the primary is deleted. Audits report its secondaries in the same two ways.
	require.NoError(t, clusters(t, r, "us-east", acme).Delete(t.Context(), "db", metav1.DeleteOptions{}))
	for _, v := range inProgress(t, coordinator(t, r, log, fanout.Options{})) {
		require.Equal(t, "I6", v.Invariant)
		require.Contains(t, v.Text, "atollctl operation resume "+id)
	}
	report, err = coordinator(t, r, waltest.NewMemory(), fanout.Options{}).Audit(t.Context(), false)
	require.NoError(t, err)
	require.NotEmpty(t, report.Violations)
}

// An audit reports PeerSets that differ as in progress while a change of the membership is under
// way, and as a violation otherwise.
func TestAnAuditDuringAChangeOfTheMembership(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	conn, err := r.Conn("ap-south")
	require.NoError(t, err)
	sets := conn.Dynamic().Resource(v1alpha1.GroupVersion.WithResource("peersets"))
	edit := func(change map[string]any) {
		set, err := sets.Get(t.Context(), v1alpha1.PeerSetName, metav1.GetOptions{})
		require.NoError(t, err)
		members, _, err := unstructured.NestedSlice(set.Object, "spec", "members")
		require.NoError(t, err)
		for _, m := range members {
			if m := m.(map[string]any); m["peer"] == "us-east" {
				m["state"] = "Leaving"
			}
		}
		require.NoError(t, unstructured.SetNestedSlice(set.Object, members, "spec", "members"))
		unstructured.RemoveNestedField(set.Object, "spec", "change")
		if change != nil {
			require.NoError(t, unstructured.SetNestedMap(set.Object, change, "spec", "change"))
		}
		epoch, _, err := unstructured.NestedInt64(set.Object, "spec", "epoch")
		require.NoError(t, err)
		require.NoError(t, unstructured.SetNestedField(set.Object, epoch+1, "spec", "epoch"))
		_, err = sets.Update(t.Context(), set, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	edit(map[string]any{"id": "change-1", "kind": "Leave", "peer": "us-east", "coordinator": "them/1", "anchor": "ap-south", "uid": "cluster"})
	pending := inProgress(t, c)
	require.Equal(t, []string{"membership"}, invariants(pending))
	require.Equal(t, region.PeerName("us-east"), pending[0].Peer)
	require.Contains(t, pending[0].Text, "change change-1, coordinator them/1")
	edit(nil)
	report, err := c.Audit(t.Context(), false)
	require.NoError(t, err)
	require.Contains(t, invariants(report.Violations), "I11")
}

// If a finalizer of another controller blocks the deletion of a guard after the removal, the audit
// reports the guard as in progress, and names the finalizer.
func TestAnAuditOfAGuardThatAFinalizerHolds(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
	require.NoError(t, err)
	release := hold(t, clusters(t, r, "eu-west", acme), "db")
	_, err = c.Remove(within(t, 2*time.Second), serviceClusters, key(acme, "db"), fanout.RemoveOptions{Unreachable: fanout.Forward})
	require.NoError(t, err)
	pending := inProgress(t, c)
	require.NotEmpty(t, pending)
	for _, v := range pending {
		require.Equal(t, "removal", v.Invariant)
	}
	require.Contains(t, pending[len(pending)-1].Text+pending[0].Text, "waits for finalizer example.com/teardown")
	release()
	_, err = c.Recover(t.Context())
	require.NoError(t, err)
	requireClean(t, c)
}
