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
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// A younger add waits until an older add of the name is committed, and then returns a HeldError for
// the older add's object. This also holds if a create of the younger add was lost.
func TestTheYoungerWaitsForTheOlder(t *testing.T) {
	for _, lost := range []bool{false, true} {
		r := newRing(t)
		acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
		var once sync.Once
		reached, proceed := make(chan struct{}), make(chan struct{})
		older := coordinator(t, r, waltest.NewMemory(), fanout.Options{
			LeaseTimeout: time.Minute,
			Observer: &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
				if e.Verb == "put" && e.Stage == "Configured" && !e.Done {
					once.Do(func() { close(reached) })
					<-proceed
				}
			}},
		})
		olderDone := make(chan error, 1)
		go func() {
			_, err := older.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
			olderDone <- err
		}()
		<-reached

		if lost {
			r.Server("eu-west").Inject(regiontest.Fault{Verb: "create", Resource: serviceClusterResource.GroupResource(), Do: regiontest.DropRequest()})
		}
		waiting := make(chan struct{})
		var waitOnce sync.Once
		younger := coordinator(t, r, waltest.NewMemory(), fanout.Options{
			LeaseTimeout: time.Minute,
			Observer: &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
				if e.Verb == "forget" || e.Verb == "advance" {
					waitOnce.Do(func() { close(waiting) })
				}
			}},
		})
		youngerDone := make(chan error, 1)
		go func() {
			_, err := younger.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
			youngerDone <- err
		}()
		<-waiting
		close(proceed)
		require.NoError(t, <-olderDone)
		err := <-youngerDone
		held, ok := errors.AsType[*fanout.HeldError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, "Configured", held.Stage, "it waited for the end")
		requireClean(t, older)
	}
}

// A removal stores its coordinator in the object.
func TestARemovalNamesItsCoordinator(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Identity: "alice's laptop"})
	name := addAccount(t, c)
	r.Partition("us-east", true)
	_, err := c.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{Unreachable: fanout.Forward})
	require.NoError(t, err)
	r.Partition("us-east", false)
	conn, err := r.Conn("ap-south")
	require.NoError(t, err)
	obj, err := conn.Dynamic().Resource(fanout.ServiceClusters().Within).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	by, _, err := unstructured.NestedString(obj.Object, "spec", "fanout", "removal", "coordinator")
	require.NoError(t, err)
	require.Equal(t, "alice's laptop", by)
	_, err = c.Recover(t.Context())
	require.NoError(t, err)
	requireClean(t, c)
}
