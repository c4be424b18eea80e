// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	operatorv1alpha1 "github.com/atoll-dev/atoll/region/operator/v1alpha1"
)

// startMaster runs a Master until stop is called, or the test ends.
func (w *world) startMaster(run func(context.Context) error, opts MasterOptions) (stop func()) {
	w.t.Helper()
	m, err := NewMaster(w.api(w.plane), run, opts)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { require.NoError(w.t, m.Start(ctx)) })
	stop = func() {
		cancel()
		wg.Wait()
	}
	w.t.Cleanup(stop)
	return stop
}

// installation returns phase, status and reason of the condition Ready of a KubeCarrier.
func (w *world) installation(name string) string {
	w.t.Helper()
	obj, err := w.client(w.plane, carrierResource, "").Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	carrier := &operatorv1alpha1.KubeCarrier{}
	require.NoError(w.t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, carrier))
	require.Len(w.t, carrier.Status.Conditions, 1)
	require.Equal(w.t, carrier.Generation, carrier.Status.ObservedGeneration)
	c := carrier.Status.Conditions[0]
	return strings.Join([]string{string(carrier.Status.Phase), string(c.Status), c.Reason}, " ")
}

func (w *world) hasLocal() bool {
	w.t.Helper()
	_, err := w.client(w.plane, peerResource, "").Get(w.t.Context(), "local", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(w.t, err)
	}
	return err == nil
}

// While the KubeCarrier of the plane is a master, the loops run and the Peer local exists, also after local was deleted
// and while the plane is unreachable.
func TestMaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var running, begun atomic.Int32
		w.startMaster(func(ctx context.Context) error {
			begun.Add(1)
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
			time.Sleep(time.Second) // the loops take a while to end
			return nil
		}, MasterOptions{})
		pass(time.Minute)
		require.Zero(t, running.Load())
		require.Empty(t, writes(w.plane)[1:], "only the namespace of the test")

		w.carrier(w.plane, "kubecarrier", false, nil)
		pass(time.Second)
		require.Zero(t, running.Load())
		require.False(t, w.hasLocal())
		require.Equal(t, "Ready True Complete", w.installation("kubecarrier"))

		w.carrier(w.plane, "kubecarrier", true, nil)
		pass(time.Second)
		require.EqualValues(t, 1, running.Load())
		require.True(t, w.hasLocal())
		require.Equal(t, "Ready True Complete", w.installation("kubecarrier"))

		for range 3 {
			w.deletePeer("local")
			pass(time.Second)
			require.True(t, w.hasLocal())
		}
		w.plane.Partition(true)
		pass(time.Hour)
		require.EqualValues(t, 1, running.Load(), "absence is not deletion")
		w.plane.Partition(false)
		pass(time.Minute)
		w.plane.Reset()
		pass(time.Hour)
		require.Empty(t, writes(w.plane))
		require.EqualValues(t, 1, begun.Load())

		w.carrier(w.plane, "kubecarrier", false, nil)
		pass(500 * time.Millisecond)
		require.Equal(t, "Pending Unknown Pending", w.installation("kubecarrier"))
		pass(time.Second)
		require.Zero(t, running.Load())
		require.Equal(t, "Ready True Complete", w.installation("kubecarrier"))
		require.True(t, w.hasLocal(), "it is left for a person to delete")

		w.carrier(w.plane, "kubecarrier", true, nil)
		pass(time.Second)
		require.EqualValues(t, 1, running.Load())
		carriers := w.client(w.plane, carrierResource, "")
		require.NoError(t, carriers.Delete(t.Context(), "kubecarrier", metav1.DeleteOptions{}))
		pass(2 * time.Second)
		require.Zero(t, running.Load())
		require.EqualValues(t, 2, begun.Load())
	})
}

// Loops that end by themselves start again, with a growing backoff; the status reports the failure until the loops have
// run for runMaxBackoff.
func TestMasterWhoseLoopsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.carrier(w.plane, "kubecarrier", true, nil)
		var begun atomic.Int32
		var well atomic.Bool
		var mu sync.Mutex
		var events []MasterEvent
		w.startMaster(func(ctx context.Context) error {
			begun.Add(1)
			if !well.Load() {
				return errTest
			}
			<-ctx.Done()
			return ctx.Err()
		}, MasterOptions{Observer: &Observer{Master: func(_ context.Context, e MasterEvent) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e)
		}}})
		pass(10 * time.Minute)
		require.Equal(t, "NotReady False Incomplete", w.installation("kubecarrier"))
		require.Less(t, begun.Load(), int32(20))
		w.plane.Reset()
		pass(time.Hour)
		require.Empty(t, writes(w.plane), "it is reported once")
		well.Store(true)
		pass(90 * time.Second)
		pass(runMaxBackoff)
		require.Equal(t, "Ready True Complete", w.installation("kubecarrier"))
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, MasterEvent{Running: true}, events[0])
		require.ErrorIs(t, events[1].Err, errTest)
		require.Equal(t, MasterEvent{Running: true}, events[len(events)-1])
	})
}

// Two masters on one plane are safe: there is one Peer local, and they do not overwrite each other in turns.
func TestTwoMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu")
		w.carrier(w.plane, "kubecarrier", true, nil)
		w.register("eu")
		w.claim(w.servers["eu"], "loodse", "eu-west-1", "Bound")
		for range 2 {
			w.startMaster(func(ctx context.Context) error {
				p := w.program(PeersOptions{})
				p.run(ctx)
				return nil
			}, MasterOptions{})
		}
		pass(10 * time.Second)
		require.True(t, w.hasLocal())
		require.Equal(t, "True Reachable", w.ready("local"))
		require.Equal(t, "True Reachable", w.ready("eu"))
		require.Equal(t, []string{"eu-west-1.loodse"}, w.regions("eu"))
		w.deletePeer("local")
		pass(10 * time.Second)
		require.Equal(t, "True Reachable", w.ready("local"))
		w.plane.Reset()
		pass(time.Hour)
		require.Empty(t, writes(w.plane))

		w.carrier(w.plane, "kubecarrier", false, nil)
		pass(10 * time.Second)
		before := len(w.servers["eu"].Requests())
		pass(time.Hour)
		require.Len(t, w.servers["eu"].Requests(), before, "all watches have ended")
	})
}

// While the deleted Peer local waits for its finalizers, the Master waits too, and then creates a new one.
func TestLocalWithAFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.carrier(w.plane, "kubecarrier", true, nil)
		w.startMaster(func(ctx context.Context) error { <-ctx.Done(); return nil }, MasterOptions{})
		pass(time.Second)
		peers := w.client(w.plane, peerResource, "")
		change := func(finalizers ...string) *unstructured.Unstructured {
			obj, err := peers.Get(t.Context(), "local", metav1.GetOptions{})
			require.NoError(t, err)
			obj.SetFinalizers(finalizers)
			obj, err = peers.Update(t.Context(), obj, metav1.UpdateOptions{})
			require.NoError(t, err)
			return obj
		}
		before := change("example.com/wait").GetUID()
		w.deletePeer("local")
		w.plane.Reset()
		pass(time.Hour)
		require.Empty(t, writes(w.plane))
		change()
		pass(time.Second)
		obj, err := peers.Get(t.Context(), "local", metav1.GetOptions{})
		require.NoError(t, err)
		require.NotEqual(t, before, obj.GetUID())
	})
}

// Each replica runs the loops, and only the owner of a KubeCarrier writes its status.
func TestReplicasOfAMaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		d := &deal{owners: map[string]string{"kubecarrier": "none"}, changed: make(chan struct{})}
		var running atomic.Int32
		for _, name := range []string{"a", "b"} {
			w.startMaster(func(ctx context.Context) error {
				running.Add(1)
				<-ctx.Done()
				return nil
			}, MasterOptions{Shards: replica{d, name}})
		}
		w.carrier(w.plane, "kubecarrier", true, nil)
		pass(time.Minute)
		require.EqualValues(t, 2, running.Load())
		obj, err := w.client(w.plane, carrierResource, "").Get(t.Context(), "kubecarrier", metav1.GetOptions{})
		require.NoError(t, err)
		require.Empty(t, obj.Object["status"], "no replica owns it")
		d.give(map[string]string{"kubecarrier": "b"})
		pass(time.Minute)
		require.Equal(t, "Ready True Complete", w.installation("kubecarrier"))
	})
}

// The loops end when the KubeCarrier is being deleted, before its finalizers are removed.
func TestAMasterThatIsBeingDeletedRunsNoLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var running atomic.Int32
		w.startMaster(func(ctx context.Context) error {
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
			return nil
		}, MasterOptions{})
		w.carrier(w.plane, "kubecarrier", true, nil)
		pass(time.Minute)
		require.EqualValues(t, 1, running.Load())
		carriers := w.client(w.plane, carrierResource, "")
		_, err := carriers.Patch(t.Context(), "kubecarrier", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/teardown"]}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		require.NoError(t, carriers.Delete(t.Context(), "kubecarrier", metav1.DeleteOptions{}))
		pass(time.Minute)
		require.Zero(t, running.Load())
	})
}
