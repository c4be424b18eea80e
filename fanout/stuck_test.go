// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// clusters returns the client for the ServiceClusters of a namespace in one peer.
func clusters(t *testing.T, r *regiontest.Ring, peer region.PeerName, namespace string) dynamic.ResourceInterface {
	t.Helper()
	conn, err := r.Conn(peer)
	require.NoError(t, err)
	return conn.Dynamic().Resource(serviceClusterResource).Namespace(namespace)
}

// writes counts the requests that the peers got, except GET requests.
func writes(r *regiontest.Ring) (n int) {
	for _, p := range peers {
		for _, request := range r.Server(p).Requests() {
			if request.Method != "GET" {
				n++
			}
		}
	}
	return n
}

// If nothing needs repair, a recovery and a sweep write nothing to the peers, and the sweep works
// on no object.
func TestASweepOfASoundRingWritesNothing(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	_, err := c.Update(t.Context(), newAccount(acme, "Provider"), fanout.AddOptions{})
	require.NoError(t, err)
	_, err = c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
	require.NoError(t, err)
	for _, p := range peers {
		r.Server(p).Reset()
	}
	_, err = c.Recover(t.Context())
	require.NoError(t, err)
	swept, err := c.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, swept)
	require.Zero(t, writes(r))
}

// hold adds a finalizer of another controller to the object called name. release removes that
// finalizer.
func hold(t *testing.T, client dynamic.ResourceInterface, name string) (release func()) {
	t.Helper()
	edit := func(finalizers func([]string) []string) {
		obj, err := client.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		obj.SetFinalizers(finalizers(obj.GetFinalizers()))
		_, err = client.Update(t.Context(), obj, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	edit(func(f []string) []string { return append(f, "example.com/teardown") })
	return func() {
		edit(func(f []string) []string { return f[:len(f)-1] })
	}
}

// A finalizer of another controller delays one removal, but not the sweep.
func TestASweepDoesNotWaitForForeignFinalizers(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
	require.NoError(t, err)
	client := clusters(t, r, "us-east", acme)
	release := hold(t, client, "db")
	require.NoError(t, client.Delete(t.Context(), "db", metav1.DeleteOptions{}))

	ctx := within(t, time.Minute)
	_, err = c.Sweep(ctx)
	require.NoError(t, err)
	require.NoError(t, ctx.Err(), "the sweep ended by itself")
	release()
	_, err = c.Sweep(t.Context())
	require.NoError(t, err)
	requireClean(t, c)
}

// A finalizer of another controller does not delay a recovery. Otherwise the finalizer would also
// delay every later operation.
func TestARecoveryDoesNotWaitForForeignFinalizers(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	asked, tired := withCancel(t)
	c := coordinator(t, r, log, fanout.Options{Observer: &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
		if e.Done && e.Verb == "delete" {
			tired() // the removal only waits from now on
		}
	}}})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
	require.NoError(t, err)
	release := hold(t, clusters(t, r, "us-east", acme), "db")
	op, err := c.Remove(asked, serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Committed, op.State)

	ctx := within(t, time.Minute)
	ops, err := c.Recover(ctx)
	require.NoError(t, err)
	require.NoError(t, ctx.Err(), "the recovery ended by itself")
	require.Len(t, ops, 1)
	require.Equal(t, fanout.Committed, ops[0].State)
	release()
	_, err = c.Recover(t.Context())
	require.NoError(t, err)
	requireSettled(t, log)
	requireClean(t, c)
}

// A sweep stops watching a reservation that shows signs of life, however long the operation takes,
// and leaves it in place. The sweep succeeds, even if a request of the sweep is in flight when the
// watch ends.
func TestASweepDoesNotOutlastALiveOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
		r.Partition("ap-south", true)
		reserved := make(chan struct{})
		var once sync.Once
		slow := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: 200 * time.Millisecond, Observer: &fanout.Observer{
			Step: func(_ context.Context, e fanout.StepEvent) {
				if e.Done && e.Verb == "create" && e.Err == nil {
					once.Do(func() { close(reserved) })
				}
			},
		}})
		ctx, cancel := withCancel(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := slow.Add(ctx, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Unreachable: fanout.Wait})
			require.ErrorIs(t, err, fanout.ErrAborted)
		})
		defer wg.Wait()
		defer cancel()
		<-reserved
		sweeper := coordinator(t, some(t, r, "eu-west", "us-east"), waltest.NewMemory(), fanout.Options{LeaseTimeout: time.Second, CallTimeout: 500 * time.Millisecond})
		r.Server("us-east").Inject(regiontest.Fault{Verb: "get", Resource: serviceClusterResource.GroupResource(), Times: -1, Do: regiontest.Delay(450 * time.Millisecond)})
		limit := within(t, 20*time.Second)
		_, err := sweeper.Sweep(limit)
		require.NoError(t, err)
		require.NoError(t, limit.Err(), "the sweep ended by itself")
		_, err = clusters(t, r, "us-east", acme).Get(t.Context(), "db", metav1.GetOptions{})
		require.NoError(t, err, "the reservation is alive")
	})
}

// A sweep reports the objects that it cannot repair.
func TestASweepTellsWhatItCannotMend(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
	require.NoError(t, err)
	require.NoError(t, clusters(t, r, "eu-west", acme).Delete(t.Context(), "db", metav1.DeleteOptions{}))
	r.Server("eu-west").Inject(regiontest.Fault{Verb: "create", Times: -1, Do: regiontest.Refuse(403)})
	_, err = c.Sweep(t.Context())
	status, refused := errors.AsType[*apierrors.StatusError](err)
	require.True(t, refused, "%v", err)
	require.True(t, apierrors.IsForbidden(status))
	require.ErrorContains(t, err, "eu-west")
	require.ErrorContains(t, err, acme+"/db")
}

// CallTimeout bounds the read of one page of a list, and not of the whole list. In virtual time
// only the delayed lists take time.
func TestManyPagesHaveTimeEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		client := clusters(t, r, "eu-west", "default")
		for i := range 1100 {
			_, err := client.Create(t.Context(), newServiceCluster("default", fmt.Sprintf("db-%d", i)), metav1.CreateOptions{})
			require.NoError(t, err)
		}
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{fanout.ServiceClusters()}, CallTimeout: time.Second})
		r.Server("eu-west").Inject(regiontest.Fault{Verb: "list", Times: -1, Do: regiontest.Delay(400 * time.Millisecond)})
		report, err := c.Audit(t.Context(), false)
		require.NoError(t, err)
		require.NoError(t, report.Unread.Err())
		require.Equal(t, 1100, report.Objects)
	})
}

// Any coordinator's sweep creates what an Account needs in a peer, also if the coordinator that
// committed the Account is gone with its log.
func TestASweepActivatesWhatIsNotReady(t *testing.T) {
	r := newRing(t)
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	for _, p := range []region.PeerName{"ap-south", "eu-west"} {
		r.Server(p).Inject(regiontest.Fault{Verb: "create", Resource: namespaces.GroupResource(), Times: -1, Do: regiontest.Refuse(403)})
	}
	name := unique("acme")
	op, err := coordinator(t, r, waltest.NewMemory(), fanout.Options{}).Add(t.Context(), newAccount(name), fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, []region.PeerName{"ap-south", "eu-west"}, pendingPeers(op))

	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	_, err = c.Sweep(t.Context())
	require.ErrorContains(t, err, "hook")
	for _, p := range peers {
		r.Server(p).Reset()
	}
	_, err = c.Sweep(t.Context())
	require.NoError(t, err)
	for _, p := range peers {
		conn, err := r.Conn(p)
		require.NoError(t, err)
		_, err = conn.Dynamic().Resource(namespaces).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
	}
	requireClean(t, c)
	swept, err := c.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, swept)
}
