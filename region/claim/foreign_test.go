// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

const stray = "stray-controller"

// overwrite writes status fields with the field manager stray.
func (w *world) overwrite(p region.PeerName, gvr schema.GroupVersionResource, kind string, status map[string]any) {
	w.t.Helper()
	require.NoError(w.t, w.tryOverwrite(w.t.Context(), p, gvr, kind, status))
}

func (w *world) tryOverwrite(ctx context.Context, p region.PeerName, gvr schema.GroupVersionResource, kind string, status map[string]any) error {
	obj := w.object(kind, name)
	obj.Object = map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": kind, "metadata": obj.Object["metadata"], "status": status}
	_, err := w.conn(p).Dynamic().Resource(gvr).Namespace(provider).ApplyStatus(ctx, name, obj, metav1.ApplyOptions{FieldManager: stray, Force: true})
	return err
}

func boundIn(p string) map[string]any {
	return map[string]any{"phase": "Bound", "holder": map[string]any{"peer": p, "since": "2026-03-01T12:00:00Z"}}
}

func conflictWith(p string) map[string]any {
	return map[string]any{"phase": "Conflict", "holder": map[string]any{"peer": p, "since": "2026-03-01T12:00:00Z"}}
}

// insists writes status as soon as it observes another phase in the object, until the test ends.
func (w *world) insists(p region.PeerName, gvr schema.GroupVersionResource, kind string, status map[string]any) {
	w.insistsBy(p, gvr, status["phase"], func(ctx context.Context) error { return w.tryOverwrite(ctx, p, gvr, kind, status) })
}

// insistsBy calls write whenever the phase differs from wanted.
func (w *world) insistsBy(p region.PeerName, gvr schema.GroupVersionResource, wanted any, write func(context.Context) error) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var wg sync.WaitGroup
	again := make(chan struct{}, 1)
	objects := loop.NewObjects(w.conn(p).Dynamic(), gvr, loop.ObjectsOptions{Strip: func(obj *unstructured.Unstructured) {
		if phase, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "phase"); phase != wanted {
			select {
			case again <- struct{}{}:
			default:
			}
		}
	}})
	wg.Go(func() { _ = objects.Start(ctx) })
	wg.Go(func() {
		for {
			select {
			case <-again:
			case <-ctx.Done():
				return
			}
			if err := write(ctx); ctx.Err() == nil && !apierrors.IsNotFound(err) {
				require.NoError(w.t, err)
			}
		}
	})
	w.t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

// TestWhatIsNoArbitersIsCorrected checks that a status by another client is corrected at once and
// decides nothing.
func TestWhatIsNoArbitersIsCorrected(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.bindTo("us", "eu")
		for range 3 {
			w.overwrite("eu", claims, "RegionClaim", boundIn("eu"))
			w.overwrite("us", claims, "RegionClaim", conflictWith("eu"))
			passes(10 * time.Second)
			require.Equal(t, "Bound us", w.statusOf("us"))
			require.Equal(t, "Conflict us", w.statusOf("eu"))
		}
		// The foreign status decides nothing either when no decision is recorded.
		w.unclaim("us")
		w.unclaim("eu")
		passes(10 * time.Second)
		require.Nil(t, w.lease())
		w.claim("us")
		time.Sleep(time.Second)
		w.claim("eu")
		w.overwrite("eu", claims, "RegionClaim", boundIn("eu"))
		passes(10 * time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"), "the elder")
		require.Equal(t, "Conflict us", w.statusOf("eu"))
	})
}

// TestWithoutAPlaneWhatIsNoArbitersDecidesNothing: without a plane the status is the decision, but
// only a status that an arbiter wrote counts.
func TestWithoutAPlaneWhatIsNoArbitersDecidesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.claim("us")
		time.Sleep(time.Second)
		w.claim("eu")
		w.overwrite("eu", claims, "RegionClaim", boundIn("eu"))
		w.start(nil, Options{})
		passes(10 * time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"), "the elder")
		require.Equal(t, "Conflict us", w.statusOf("eu"))

		w.overwrite("eu", claims, "RegionClaim", boundIn("eu"))
		passes(10 * time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Conflict us", w.statusOf("eu"))
		w.overwrite("us", claims, "RegionClaim", conflictWith("eu"))
		passes(time.Minute)
		require.Equal(t, "Bound us", w.statusOf("us"), "decided again: it is still the oldest")
		require.Equal(t, "Conflict us", w.statusOf("eu"))
	})
}

// TestAStrayControllerNeitherOpensNorClosesAGate checks that a gate stays as it is while another
// client keeps replacing the status of the RegionClaim, and that the arbiter corrects this status
// only after growing pauses.
func TestAStrayControllerNeitherOpensNorClosesAGate(t *testing.T) {
	for what, p := range map[string]region.PeerName{"opens": "eu", "closes": "us"} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var mu sync.Mutex
				var found []ContradictEvent
				gates := 0
				w.start(w.api, Options{Observer: &Observer{
					Contradicted: func(_ context.Context, e ContradictEvent) {
						mu.Lock()
						defer mu.Unlock()
						found = append(found, e)
					},
					Gated: func(context.Context, GateEvent) {
						mu.Lock()
						defer mu.Unlock()
						gates++
					},
				}})
				w.bindTo("us", "eu")
				w.cluster(p)
				passes(10 * time.Second)
				before, server := w.gated(p), w.ring.Server(p)
				said := map[string]map[string]any{"opens": boundIn("eu"), "closes": conflictWith("eu")}[what]
				server.Reset()
				slowly(w, p)
				gates = 0
				w.insists(p, claims, "RegionClaim", said)
				passes(time.Hour)
				require.Equal(t, before, w.gated(p))
				require.Zero(t, gates)
				require.LessOrEqual(t, writes(server), 2*(corrections(time.Hour)+2), "of each")
				require.GreaterOrEqual(t, writes(server), 2*(corrections(time.Hour)-2), "it is corrected every time")
				require.Len(t, found, 1)
				require.Equal(t, stray, found[0].By)
				require.Equal(t, region.PeerName("us"), found[0].Holder)
				require.Equal(t, region.PeerName("eu"), found[0].Theirs)

				// A new decision is recorded although the other client keeps writing.
				w.unclaim("us")
				passes(10 * time.Second)
				require.Equal(t, "eu", string(holderOf(w.lease())))
			})
		})
	}
}

// TestAStatusThatIsErasedAgainAndAgain checks that erasing a status does not close the gate.
func TestAStatusThatIsErasedAgainAndAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var found []ContradictEvent
		var gates int
		var before []v1alpha1.RegionClaimPhase
		w.start(w.api, Options{Observer: &Observer{
			Contradicted: func(_ context.Context, e ContradictEvent) {
				mu.Lock()
				defer mu.Unlock()
				found = append(found, e)
			},
			Gated: func(context.Context, GateEvent) {
				mu.Lock()
				defer mu.Unlock()
				gates++
			},
			Reported: func(_ context.Context, e ReportEvent) {
				mu.Lock()
				defer mu.Unlock()
				before = append(before, e.Before)
			},
		}})
		w.bindTo("us", "eu")
		w.cluster("us")
		passes(10 * time.Second)
		require.Equal(t, "Pending Bound", w.gated("us"))
		slowly(w, "us")
		gates, before = 0, nil
		client := w.conn("us").Dynamic().Resource(claims).Namespace(provider)
		w.insistsBy("us", claims, nil, func(ctx context.Context) error {
			_, err := client.Patch(ctx, name, types.MergePatchType, []byte(`{"status":null}`), metav1.PatchOptions{FieldManager: stray}, "status")
			return err
		})
		passes(time.Hour)
		require.Equal(t, "silence", w.statusOf("us"))
		require.Equal(t, "Pending Bound", w.gated("us"))
		require.Zero(t, gates)
		require.Len(t, found, 1)
		require.Empty(t, found[0].By, "managedFields do not show who removed a field")
		require.NotEmpty(t, before)
		for _, phase := range before {
			require.Equal(t, v1alpha1.RegionClaimBound, phase, "arbiters have not changed it")
		}
	})
}

// TestAGateThatIsWrittenAgainAndAgain checks that a gate is corrected, with pauses.
func TestAGateThatIsWrittenAgainAndAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.bindTo("us", "eu")
		w.cluster("eu")
		passes(10 * time.Second)
		require.Equal(t, "Pending RegionUnbound", w.gated("eu"))
		eu := w.ring.Server("eu")
		eu.Reset()
		slowly(w, "eu")
		w.insists("eu", clusters, "ServiceCluster", map[string]any{"phase": "Ready", "conditions": []any{map[string]any{
			"type": regionBound, "status": "True", "reason": "Stray", "message": "", "lastTransitionTime": "2026-03-01T12:00:00Z",
		}}})
		passes(time.Hour)
		require.LessOrEqual(t, writes(eu), 2*(corrections(time.Hour)+2), "of each")
		require.GreaterOrEqual(t, writes(eu), 2*(corrections(time.Hour)-2), "it is corrected every time")
		require.Equal(t, "Conflict us", w.statusOf("eu"))
	})
}

// TestWhileThePlaneIsAwayWhatIsNoArbitersIsLeft: without the plane the decision is not known, so a
// status by another client is neither corrected nor followed.
func TestWhileThePlaneIsAwayWhatIsNoArbitersIsLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stop := w.start(w.api, Options{})
		w.cluster("us")
		passes(10 * time.Second)
		w.cluster("eu")
		passes(10 * time.Second)
		require.Equal(t, "Pending Bound", w.gated("us"))
		require.Equal(t, "Pending RegionUnbound", w.gated("eu"))
		w.plane.Partition(true)
		w.overwrite("us", claims, "RegionClaim", conflictWith("eu"))
		w.overwrite("eu", claims, "RegionClaim", boundIn("eu"))
		passes(time.Hour)
		require.Equal(t, "Pending Bound", w.gated("us"))
		require.Equal(t, "Pending RegionUnbound", w.gated("eu"))
		stop()
		w.start(w.api, Options{})
		passes(time.Hour)
		require.Equal(t, "Pending Bound", w.gated("us"), "nor does an arbiter that has written nothing yet")
		require.Equal(t, "Pending RegionUnbound", w.gated("eu"))
		w.plane.Partition(false)
		passes(2 * time.Minute)
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Conflict us", w.statusOf("eu"))
	})
}

// TestAStatusThatIsErasedWhileThePlaneIsAway erases the status Bound while the plane is unreachable.
// It checks that the arbiter writes neither the status nor the gate until the plane is reachable
// again, so that the gate stays open. Then the arbiter writes the status again.
func TestAStatusThatIsErasedWhileThePlaneIsAway(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.cluster("us")
		passes(10 * time.Second)
		require.Equal(t, "Pending Bound", w.gated("us"))
		w.plane.Partition(true)
		obj := w.stored("us", claims)
		delete(obj.Object, "status")
		_, err := w.conn("us").Dynamic().Resource(claims).Namespace(provider).UpdateStatus(t.Context(), obj, metav1.UpdateOptions{})
		require.NoError(t, err)
		w.ring.Server("us").Reset()
		passes(time.Hour)
		require.Equal(t, "silence", w.statusOf("us"))
		require.Equal(t, "Pending Bound", w.gated("us"))
		require.Zero(t, writes(w.ring.Server("us")))
		w.plane.Partition(false)
		passes(2 * time.Minute)
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Pending Bound", w.gated("us"))
	})
}

// TestWhoIsNoArbiter: a status is foreign if another client wrote holder.peer or holder.since.
func TestWhoIsNoArbiter(t *testing.T) {
	for what, holder := range map[string]map[string]any{
		"holder": {"peer": "eu"}, "since": {"peer": "us", "since": "2030-03-01T12:00:00Z"},
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				stop := w.start(w.api, Options{})
				w.claim("us")
				passes(10 * time.Second)
				stop()
				require.False(t, isForeign(w.stored("us", claims)))
				w.overwrite("us", claims, "RegionClaim", map[string]any{"holder": holder})
				require.True(t, isForeign(w.stored("us", claims)))
				require.Equal(t, stray, writerOf(w.stored("us", claims)))
				require.Zero(t, boundSince(w.stored("us", claims), "us"))
				require.True(t, biddable(w.stored("us", claims)))
			})
		})
	}
}

// TestWhoSaysTheSameChangesNothing: if another client applies the same values, the arbiter still
// co-owns the fields.
func TestWhoSaysTheSameChangesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stop := w.start(w.api, Options{})
		w.claim("us")
		passes(10 * time.Second)
		stop()
		since := w.status("us").Holder.Since
		w.overwrite("us", claims, "RegionClaim", map[string]any{
			"phase": "Bound", "holder": map[string]any{"peer": "us", "since": since.UTC().Format(time.RFC3339)},
		})
		require.Contains(t, loop.StatusManagers(w.stored("us", claims), "phase"), stray)
		require.False(t, isForeign(w.stored("us", claims)))
		require.Equal(t, since.UTC(), boundSince(w.stored("us", claims), "us"))
	})
}

// TestAStatusWhoseManagersWereForgotten checks that a status without managedFields is foreign, and
// is written again at once.
func TestAStatusWhoseManagersWereForgotten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.bindTo("us", "eu")
		for _, p := range []region.PeerName{"eu", "us"} {
			obj, err := w.conn(p).Dynamic().Resource(claims).Namespace(provider).Patch(t.Context(), name, types.MergePatchType,
				[]byte(`{"metadata":{"managedFields":[{}]}}`), metav1.PatchOptions{})
			require.NoError(t, err)
			require.True(t, isForeign(obj))
		}
		passes(time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Conflict us", w.statusOf("eu"))
	})
}
