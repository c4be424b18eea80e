// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// meanwhile runs the function do. While the first request with the given verb for the object is in
// flight, it runs the function change.
func meanwhile(t *testing.T, s *regiontest.Server, verb string, gr schema.GroupResource, name string, change, do func()) {
	t.Helper()
	s.Inject(regiontest.Fault{Verb: verb, Resource: gr, Name: name, Do: regiontest.Delay(2 * time.Second)})
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	time.Sleep(time.Second)
	synctest.Wait()
	change()
	<-done
}

var labelled = []byte(`{"metadata":{"labels":{"edited":"meanwhile"}}}`)

// Another client changes a guard while a request to delete the guard is on its way. The API server
// rejects the request with a conflict, and the coordinator deletes the guard with another request.
func TestADeletionHasPreconditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{CallTimeout: time.Minute})
		acme := addAccount(t, c)
		_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
		require.NoError(t, c.Wait(t.Context()))
		server := r.Server("ap-south")
		server.Reset()
		meanwhile(t, server, "delete", serviceClusterResource.GroupResource(), "db", func() {
			_, err := clusters(t, r, "ap-south", acme).Patch(t.Context(), "db", types.MergePatchType, labelled, metav1.PatchOptions{})
			require.NoError(t, err)
		}, func() {
			_, err := c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
			require.NoError(t, err)
		})
		var codes []int
		for _, request := range server.Requests() {
			if request.Verb == "delete" && request.Name == "db" {
				codes = append(codes, request.Code)
			}
		}
		require.Equal(t, []int{http.StatusConflict, http.StatusOK}, codes)
	})
}

// A release that conflicts with a change by another client is retried. If another object has the
// name by then, the retry does not release that object.
func TestAReleaseMeetsAConflict(t *testing.T) {
	held := func(t *testing.T) (*regiontest.Ring, *fanout.Coordinator, string) {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{CallTimeout: time.Minute})
		acme := addAccounts(t, c, 1)[0]
		_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
		deleteAt(t, r, home, acme)
		sweep(t, c)
		return r, c, acme
	}
	t.Run("of an edit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, c, acme := held(t)
			meanwhile(t, r.Server(home), "update", accountResource.GroupResource(), acme, func() {
				_, err := accountsIn(t, r, home).Patch(t.Context(), acme, types.MergePatchType, labelled, metav1.PatchOptions{})
				require.NoError(t, err)
			}, func() {
				_, err := c.ReleaseRemoval(t.Context(), accounts, key("", acme), "")
				require.NoError(t, err)
			})
			obj, err := accountsIn(t, r, home).Get(t.Context(), acme, metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, string(obj.GetUID()), obj.GetAnnotations()[v1alpha1.ReleaseRemovalAnnotation])
			require.Equal(t, "meanwhile", obj.GetLabels()["edited"])
		})
	})
	t.Run("of another object", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, c, acme := held(t)
			meanwhile(t, r.Server(home), "update", accountResource.GroupResource(), acme, func() {
				forget(t, accountsIn(t, r, home), acme)
				_, err := accountsIn(t, r, home).Create(t.Context(), newAccount(acme), metav1.CreateOptions{})
				require.NoError(t, err)
			}, func() {
				_, err := c.ReleaseRemoval(t.Context(), accounts, key("", acme), "")
				require.ErrorIs(t, err, fanout.ErrNotHeld)
			})
			obj, err := accountsIn(t, r, home).Get(t.Context(), acme, metav1.GetOptions{})
			require.NoError(t, err)
			require.NotContains(t, obj.GetAnnotations(), v1alpha1.ReleaseRemovalAnnotation)
		})
	})
}

// Finalizers of other controllers stay on an object that is adopted.
func TestAnAdoptionKeepsTheFinalizersOfOthers(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	client := clustersIn(t, r, "us-east", acme)
	cluster := newServiceCluster(acme, "db")
	cluster.SetFinalizers([]string{"example.com/teardown"})
	apply(t, client, cluster)
	_, err := c.Adopt(t.Context(), "us-east", serviceClusters, key(acme, "db"))
	require.NoError(t, err)
	require.Equal(t, []string{"example.com/teardown", v1alpha1.PrimaryFinalizer}, read(t, client, "db").GetFinalizers())
}

// An object that was deleted with its owner between two lists of an audit is not reported as an
// object without an owner: the audit reads it again.
func TestAnAuditBesideARemovalFindsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{CallTimeout: time.Minute})
		acme := addAccount(t, c)
		_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
		require.NoError(t, c.Wait(t.Context()))
		meanwhile(t, r.Server("us-east"), "list", accountResource.GroupResource(), "", func() {
			_, err := c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
			require.NoError(t, err)
			_, err = c.Remove(t.Context(), accounts, key("", acme), fanout.RemoveOptions{})
			require.NoError(t, err)
		}, func() {
			report, err := coordinator(t, r, waltest.NewMemory(), fanout.Options{CallTimeout: time.Minute}).Audit(t.Context(), false)
			require.NoError(t, err)
			require.Empty(t, report.Violations)
		})
	})
}

// A failed list is not an empty list: a sweep repairs nothing because of it, and an audit names
// the peer.
func TestAListThatFailsIsNotEmpty(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	require.NoError(t, c.Wait(t.Context()))
	before := writes(r)
	r.Server("us-east").Inject(regiontest.Fault{Verb: "list", Resource: serviceClusterResource.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusServiceUnavailable)})
	_, err = c.Sweep(t.Context())
	require.ErrorContains(t, err, "us-east")
	require.Equal(t, before, writes(r))
	report, err := c.Audit(t.Context(), false)
	require.NoError(t, err)
	require.ErrorContains(t, report.Unread.Err(), "us-east")
	require.Empty(t, report.Violations)
}

// After an attempt gave way to a rival, the next attempt has a new operation ID, because another
// coordinator may have ended the operation of the earlier attempt.
func TestEachAttemptIsAnOperationOfItsOwn(t *testing.T) {
	r := newRing(t)
	acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
	add := func(ctx context.Context, target region.PeerName, step func(context.Context, fanout.StepEvent)) (*fanout.Operation, error) {
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: time.Minute, Observer: &fanout.Observer{Step: step}})
		return c.Add(ctx, newServiceCluster(acme, "db"), fanout.AddOptions{Target: target})
	}
	older, cancel := withCancel(t)
	var once, gave sync.Once
	reserved, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		_, _ = add(older, "us-east", func(call context.Context, e fanout.StepEvent) {
			if e.Verb == "put" && e.Stage == "Configured" && !e.Done {
				once.Do(func() { close(reserved) })
				<-call.Done() // older ends before the contexts derived from it do
			}
		})
	}()
	<-reserved
	op, err := add(t.Context(), "eu-west", func(_ context.Context, e fanout.StepEvent) {
		if e.Verb == "forget" || e.Verb == "advance" {
			gave.Do(cancel)
		}
	})
	require.NoError(t, err)
	<-over
	db := read(t, clusters(t, r, "eu-west", acme), "db")
	id, _, _ := unstructured.NestedString(db.Object, "spec", "fanout", "claim", "operation")
	require.NotEqual(t, op.ID, id, "the first attempt gave way")
	require.Equal(t, db.GetUID(), op.UID, "an audit that reports the object as lost names its claim's operation and its UID")
}

// Two processes that initialise a ring concurrently use one ring ID: that of the PeerSet which was
// written first.
func TestTwoProcessesMakeOneRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := regiontest.NewRing(peers...)
		t.Cleanup(r.Close)
		require.NoError(t, r.AddDefinitions(definitions(t)))
		for p, delay := range map[region.PeerName]time.Duration{"ap-south": 2 * time.Second, "eu-west": 5 * time.Second, "us-east": 5 * time.Second} {
			r.Server(p).Inject(regiontest.Fault{Verb: "create", Resource: v1alpha1.Resource("peersets"), Do: regiontest.Delay(delay)})
		}
		made, first := make(chan error), coordinator(t, r, waltest.NewMemory(), fanout.Options{CallTimeout: time.Minute})
		go func() { made <- first.InitPeers(t.Context()) }()
		time.Sleep(time.Second) // the create of the first one is on its way to ap-south, and the second one overtakes it
		require.NoError(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{CallTimeout: time.Minute}).InitPeers(t.Context()))
		require.NoError(t, <-made)
		oneRing(t, r)
	})
}
