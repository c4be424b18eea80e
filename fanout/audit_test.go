// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

func invariants(violations []fanout.Violation) []string {
	var names []string
	for _, v := range violations {
		names = append(names, v.Invariant)
	}
	return names
}

// spoil edits the claim of a Secret in a way that no coordinator does.
func spoil(t *testing.T, r *regiontest.Ring, peer region.PeerName, name string, edit func(claim string) string) {
	t.Helper()
	conn, err := r.Conn(peer)
	require.NoError(t, err)
	client := conn.Dynamic().Resource(secretKind().Resource).Namespace("default")
	obj, err := client.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	annotations := obj.GetAnnotations()
	annotations["example.com/claim"] = edit(annotations["example.com/claim"])
	obj.SetAnnotations(annotations)
	_, err = client.Update(t.Context(), obj, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// An audit reports a claim that cannot be read, and concludes nothing else from that claim. An
// audit with repair does not repair it.
func TestAClaimThatCannotBeReadIsLeftAlone(t *testing.T) {
	for name, edit := range map[string]func(string) string{
		"not JSON":      func(string) string { return "garbage" },
		"unheard stage": func(string) string { return `{"claim":{"operation":"o","role":"Primary"},"stage":"Sideways"}` },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRing(t)
			c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{secretKind()}})
			name := unique("ca")
			_, err := c.Add(t.Context(), newSecret(name, "secret"), fanout.AddOptions{Target: "eu-west"})
			require.NoError(t, err)
			spoil(t, r, "eu-west", name, edit)
			for _, repair := range []bool{false, true} {
				report, err := c.Audit(t.Context(), repair)
				require.NoError(t, err)
				require.Equal(t, []string{"claim"}, invariants(report.Violations))
				require.Empty(t, report.Pending)
				require.Equal(t, 3, report.Objects)
			}
		})
	}
}

// If an object is added while an audit reads the peers, the audit reports no violation.
func TestAnAuditBesideAnAddFindsNothing(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	for _, p := range peers {
		r.Server(p).Reset()
	}
	gr := serviceClusterResource.GroupResource()
	r.Server("us-east").Inject(regiontest.Fault{Verb: "list", Resource: gr, Skip: 1, Do: regiontest.Delay(time.Second)})
	var report *fanout.Report
	var told error
	var wg sync.WaitGroup
	wg.Go(func() { report, told = c.Audit(t.Context(), false) })
	require.Eventually(t, func() bool {
		for _, p := range []region.PeerName{"ap-south", "eu-west"} {
			lists := 0
			for _, request := range r.Server(p).Requests() {
				if request.GroupResource() == gr && request.Verb == "list" && request.Code == 200 {
					lists++
				}
			}
			if lists < 2 {
				return false
			}
		}
		return true
	}, time.Minute, time.Millisecond)
	_, err := coordinator(t, r, waltest.NewMemory(), fanout.Options{}).Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	wg.Wait()
	require.NoError(t, told)
	require.Empty(t, report.Violations)
}

// A person removes the finalizers of an Account in all peers, and then deletes the Account there.
// An audit reports the Account's ServiceCluster, which has no owner now.
func TestAClusterWithoutAnAccountIsFound(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	for _, p := range peers {
		conn, err := r.Conn(p)
		require.NoError(t, err)
		client := conn.Dynamic().Resource(fanout.ServiceClusters().Within)
		obj, err := client.Get(t.Context(), acme, metav1.GetOptions{})
		require.NoError(t, err)
		obj.SetFinalizers(nil)
		_, err = client.Update(t.Context(), obj, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, client.Delete(t.Context(), acme, metav1.DeleteOptions{}))
	}
	report, err := c.Audit(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, []string{"owner"}, invariants(report.Violations))
	require.EqualValues(t, "us-east", report.Violations[0].Peer)
	require.Equal(t, key(acme, "db"), report.Violations[0].Key)
	require.Contains(t, report.Violations[0].Text, acme)
}

// A ServiceCluster that was added while its Account was being removed delays that removal. An
// audit reports the removal as in progress, because the Account's primary exists until the
// ServiceCluster is removed.
func TestARemovalThatWaitsForAClusterIsUnderWay(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	other := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := unique("acme")
	_, err := other.Add(t.Context(), newAccount(acme), fanout.AddOptions{Target: "ap-south"})
	require.NoError(t, err)
	var once sync.Once
	c := coordinator(t, r, log, fanout.Options{Observer: &fanout.Observer{Step: func(ctx context.Context, e fanout.StepEvent) {
		if !e.Done && e.Verb == "put" && e.Stage == "Removing" { // the removal has read that the namespace is empty
			once.Do(func() {
				_, err := other.Add(ctx, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
				require.NoError(t, err)
			})
		}
	}}})
	_, err = c.Remove(t.Context(), accounts, key("", acme), fanout.RemoveOptions{})
	occupied, ok := errors.AsType[*fanout.OccupiedError](err)
	require.True(t, ok, "%v", err)
	require.True(t, occupied.Committed)
	report, err := other.Audit(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, report.Violations)
	require.Equal(t, []string{"removal"}, invariants(report.Pending))

	_, err = other.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	_, err = c.Recover(t.Context())
	require.NoError(t, err)
	requireSettled(t, log)
	requireClean(t, c)
}

// A process dies before its commit, and its log is lost. One sweep, or one audit with repair,
// deletes all reservations of the dead process, although the secondaries count as pending until the
// primary is deleted.
func TestOnePassEndsADeadReservation(t *testing.T) {
	for name, pass := range map[string]func(*testing.T, *fanout.Coordinator){
		"audit with repair": func(t *testing.T, c *fanout.Coordinator) {
			report, err := c.Audit(t.Context(), true)
			require.NoError(t, err)
			require.Empty(t, report.Violations)
			require.Equal(t, []string{"I6"}, invariants(report.Repaired))
		},
		"sweep": func(t *testing.T, c *fanout.Coordinator) {
			_, err := c.Sweep(t.Context())
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRing(t)
			c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
			acme := addAccount(t, c)
			stop := newCrash(8, false) // before the commit
			doomed := coordinator(t, r, waltest.NewMemory(), fanout.Options{Observer: &fanout.Observer{Step: stop.step}, Cleanup: time.Millisecond})
			ctx, cancel := withCancel(t)
			returned := make(chan error, 1)
			go func() {
				_, err := doomed.Add(ctx, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
				returned <- err
			}()
			<-stop.stopped
			require.NotNil(t, held(t, r, key(acme, "db")), "all peers have a reservation")
			pass(t, c)
			requireClean(t, c)
			require.Nil(t, held(t, r, key(acme, "db")))

			heal := cut(r) // the dead process must not act any longer
			cancel()
			close(stop.release)
			t.Logf("the dead process would have said: %v", <-returned)
			heal()
		})
	}
}

// An object is removed while a sweep is about to restore one of its guards. So the sweep creates
// the guard after the removal has cleared the peer. The same sweep deletes the guard again.
func TestARestoredGuardDoesNotOutliveItsPrimary(t *testing.T) {
	r := newRing(t)
	other := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, other)
	_, err := other.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	conn, err := r.Conn("eu-west")
	require.NoError(t, err)
	require.NoError(t, conn.Dynamic().Resource(serviceClusterResource).Namespace(acme).Delete(t.Context(), "db", metav1.DeleteOptions{}))

	var once sync.Once
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Observer: &fanout.Observer{Step: func(ctx context.Context, e fanout.StepEvent) {
		if !e.Done && e.Verb == "create" {
			once.Do(func() {
				op, err := other.Remove(ctx, serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
				require.NoError(t, err)
				require.Equal(t, fanout.Done, op.State)
			})
		}
	}}})
	_, err = c.Sweep(t.Context())
	require.NoError(t, err)
	requireClean(t, other)
	require.Nil(t, held(t, r, key(acme, "db")))
}

// Each of two objects of one name names itself as the home. An audit with repair reports this, and
// does not repair it.
func TestTwoHomesAreFound(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{secretKind()}})
	name := unique("ca")
	_, err := c.Add(t.Context(), newSecret(name, "secret"), fanout.AddOptions{Target: "eu-west"})
	require.NoError(t, err)
	conn, err := r.Conn("us-east")
	require.NoError(t, err)
	obj, err := conn.Dynamic().Resource(secretKind().Resource).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	spoil(t, r, "us-east", name, func(claim string) string {
		state := &unstructured.Unstructured{Object: map[string]any{}}
		require.NoError(t, state.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"State",`+claim[1:])))
		require.NoError(t, unstructured.SetNestedMap(state.Object, map[string]any{"peer": "us-east", "uid": string(obj.GetUID()), "term": int64(2)}, "home"))
		text, err := state.MarshalJSON()
		require.NoError(t, err)
		return string(text)
	})
	report, err := c.Audit(t.Context(), true)
	require.NoError(t, err)
	require.Contains(t, invariants(report.Violations), "I10")
}
