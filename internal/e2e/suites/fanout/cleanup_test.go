// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

var clusterResource = schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "serviceclusters"}

const cleanUp = "example.com/clean-up"

// TestAFinalizerRunsBeforeTheNameIsFree removes a ServiceCluster with a finalizer of another controller, by a coordinator
// and by a plain delete. Until the finalizer is removed, the guards stay and the name is taken: also while the object's
// API server is down, and after a restart of the coordinator.
func TestAFinalizerRunsBeforeTheNameIsFree(t *testing.T) {
	t.Parallel()
	r := newRing(t, own(t))
	owner, other := r.planes[0], r.planes[1]
	opts := fanout.Options{LeaseTimeout: time.Second, MaxInFlight: time.Nanosecond}
	c, _ := r.coordinator(t, opts)
	acme := addAccount(t, c)
	for name, remove := range map[string]func(*fanout.Coordinator){
		"removed": func(c *fanout.Coordinator) {
			op, err := c.Remove(within(t, 5*time.Second), serviceClusters, key(acme, "removed"), fanout.RemoveOptions{})
			require.NoError(t, err)
			require.Equal(t, fanout.Committed, op.State)
			require.ErrorContains(t, op.Peers.Err(), cleanUp)
		},
		"deleted": func(c *fanout.Coordinator) {
			require.NoError(t, planetest.Dynamic(t, owner.Config()).Resource(clusterResource).Namespace(acme).Delete(t.Context(), "deleted", metav1.DeleteOptions{}))
			_, err := c.Sweep(within(t, time.Minute))
			require.NoError(t, err)
		},
	} {
		// Each removal has a coordinator and a log of its own, because the second half of the test replaces them.
		c, log := r.coordinator(t, opts)
		in := planetest.Dynamic(t, owner.Config()).Resource(clusterResource).Namespace(acme)
		op, err := c.Add(within(t, time.Minute), newServiceCluster(acme, name), fanout.AddOptions{Target: planetest.Peer(t, owner).Name, Durable: true})
		require.NoError(t, err)
		require.Equal(t, fanout.Done, op.State, "%v", op.Peers.Err())
		edit := func(change func([]string) []string) {
			planetest.Eventually(t, time.Minute, "the finalizers of "+name, func(ctx context.Context) error {
				obj, err := in.Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				obj.SetFinalizers(change(obj.GetFinalizers()))
				_, err = in.Update(ctx, obj, metav1.UpdateOptions{})
				return err
			})
		}
		edit(func(f []string) []string { return append(f, cleanUp) })
		remove(c)
		taken := func(c *fanout.Coordinator) {
			_, err := planetest.Dynamic(t, other.Config()).Resource(clusterResource).Namespace(acme).Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err, "the guard")
			_, err = c.Add(within(t, 5*time.Second), newServiceCluster(acme, name), fanout.AddOptions{Target: planetest.Peer(t, other).Name})
			require.Error(t, err)
		}
		taken(c)
		require.NoError(t, owner.Kill(t.Context()))
		_, _ = c.Recover(within(t, 10*time.Second)) // the object's peer does not answer
		_, _ = c.Sweep(within(t, 10*time.Second))
		taken(c)
		require.NoError(t, owner.Restart(t.Context()))
		c, err = fanout.New(r.conns, log, fanout.Options{Kinds: c.Kinds(), LeaseTimeout: opts.LeaseTimeout, MaxInFlight: opts.MaxInFlight, Observer: trace(t)})
		require.NoError(t, err)
		_, _ = c.Recover(within(t, time.Minute)) // the removal is open still
		taken(c)

		edit(func(f []string) []string { return slices.DeleteFunc(f, func(f string) bool { return f == cleanUp }) })
		planetest.Eventually(t, time.Minute, name+" and its guards are gone", func(ctx context.Context) error {
			_, err1 := c.Recover(ctx)
			_, err2 := c.Sweep(ctx)
			for _, p := range r.planes {
				_, err := planetest.Dynamic(t, p.Config()).Resource(clusterResource).Namespace(acme).Get(ctx, name, metav1.GetOptions{})
				if !apierrors.IsNotFound(err) {
					return errors.Join(err1, err2, err, errors.New("peer "+p.Name()+" has an object of the name"))
				}
			}
			return nil
		})
		op, err = c.Add(within(t, time.Minute), newServiceCluster(acme, name), fanout.AddOptions{Target: planetest.Peer(t, other).Name, Durable: true})
		require.NoError(t, err)
		require.Equal(t, fanout.Done, op.State, "%v", op.Peers.Err())
		require.NoError(t, c.Wait(t.Context()))
	}
	r.audited(t, c)
}
