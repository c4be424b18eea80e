// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// Each test of this file covers a state that TestStates of internal/plans found; see
// docs/evidence/states.md.

// patchStatus writes conditions into a status, as another client.
func patchStatus(t *testing.T, api region.API, name string, conditions ...metav1.Condition) {
	t.Helper()
	for i := range conditions {
		conditions[i].LastTransitionTime, conditions[i].Reason = metav1.NewTime(time.Now()), "Odd"
	}
	data, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	require.NoError(t, err)
	_, err = api.Dynamic().Resource(resource).Patch(t.Context(), name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: "restore"}, "status")
	require.NoError(t, err)
}

// Replicas without a home hold the name. The Replicator reports the conflict and tries no add. An add
// would reserve the name in the peer without an object, and the events would start the next add.
func TestAReplicaWithoutAHomeIsNoReasonToAdd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}))
		w.awaitReady("acme")
		home := w.conn(w.home("acme")).Dynamic().Resource(resource)
		require.NoError(t, home.Delete(t.Context(), "acme", metav1.DeleteOptions{}))
		_, err := home.Patch(t.Context(), "acme", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		status := w.await("acme", func(s v1alpha1.AccountStatus) bool {
			return condition(s, "Ready").Reason == string(v1alpha1.AccountReasonConflict)
		}, "the name is held")
		require.Contains(t, condition(status, "Ready").Message, "its home is lost")
		quiet(t, w.servers()...)
	})
}

// An add that another object prevents counts as failed: the Replicator pauses before the next add,
// and writes nothing until then. After each failure the pause is twice as long. The first add after
// the other object was deleted succeeds.
func TestAHeldAddPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStill(t)
		w.create(newAccount("acme", []any{"Tenant"}))
		w.finalizers("acme", Finalizer)
		others := w.conn("us-east").Dynamic().Resource(resource)
		_, err := others.Create(t.Context(), newAccount("acme", []any{"Provider"}), metav1.CreateOptions{})
		require.NoError(t, err)
		work := func() (*task, time.Duration) {
			task := w.taskOf(get(t, w.api, resource, "", "acme"))
			for _, peer := range peerNames { // the caches do not show the other object
				task.observed = append(task.observed, observation{peer: peer, member: fanoutv1alpha1.PeerActive})
			}
			again, err := task.run(t.Context())
			require.NoError(t, err)
			return task, again
		}
		for _, pause := range []time.Duration{settle, 2 * settle} {
			task, _ := work()
			require.Equal(t, v1alpha1.AccountReasonConflict, task.reason)
			require.True(t, task.failed)
			for _, s := range w.servers() {
				s.Reset()
			}
			time.Sleep(pause - time.Millisecond)
			_, again := work()
			require.Equal(t, time.Millisecond, again)
			for _, s := range w.servers() {
				require.Zero(t, writesTo(s))
			}
			time.Sleep(again)
		}
		require.NoError(t, others.Delete(t.Context(), "acme", metav1.DeleteOptions{}))
		task, _ := work()
		require.False(t, task.failed)
		for _, peer := range peerNames {
			require.Equal(t, tenant, w.held(peer, "acme"))
		}
	})
}

// Another client has written a condition PresentIn. The Replicator removes the condition, because
// its peer is no exception.
func TestAConditionOfAnotherClientGoes(t *testing.T) {
	t.Parallel()
	for name, conditions := range map[string][]metav1.Condition{
		"a peer without an exception": {{Type: "PresentIn.gone", Status: metav1.ConditionFalse}},
		"a peer with an exception":    {{Type: "PresentIn.eu-west", Status: metav1.ConditionTrue}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newSlowWorld(t, Options{})
				w.create(newAccount("acme", []any{"Tenant"}))
				w.awaitReady("acme")
				w.stop()
				patchStatus(t, w.api, "acme", conditions...)
				w.ring.Partition("eu-west", true)
				w.stop = run(t, mustReplicator(t, w).Start)
				w.await("acme", func(s v1alpha1.AccountStatus) bool {
					return len(s.Peers.Unknown) == 1 && s.Phase == v1alpha1.AccountUnready
				}, "a peer is silent")
				w.ring.Partition("eu-west", false)
				status := w.awaitReady("acme")
				for _, c := range conditions {
					require.Empty(t, condition(status, c.Type))
				}
				quiet(t, w.servers()...)
			})
		})
	}
}

func mustReplicator(t *testing.T, w *world) *Replicator {
	t.Helper()
	r, err := NewReplicator(w.api, w.ring, w.c, Options{RemovalCap: noCap})
	require.NoError(t, err)
	return r
}

// An Account is reported as orphaned, even if a restarted Replicator looks for its central object
// before the cache of the central plane is filled.
func TestAnOrphanIsReportedAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStill(t)
		left := newAccount("acme", []any{"Tenant"})
		left.SetAnnotations(map[string]string{OriginAnnotation: "of-a-lost-one"})
		_, err := w.c.Add(t.Context(), left, fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)

		w.r.objects = loop.NewObjects(w.api.Dynamic(), resource, loop.ObjectsOptions{Changed: w.r.add, Flows: w.r.all})
		key := types.NamespacedName{Name: "acme"}
		again, err := w.r.work(t.Context(), loop.KeyText(key)) // nothing is listed yet
		require.NoError(t, err)
		require.Zero(t, again)
		require.Contains(t, w.r.postponed.take(), key)

		w.stop = run(t, w.r.Start)
		eventually(t, func() bool { return isOrphaned(get(t, w.conn("us-east"), resource, "", "acme")) }, "the home is marked")
	})
}

// If the central plane is a peer, the Replicator does not overwrite an edit of the central object
// that the Replicator's cache does not show yet.
func TestALaterEditInPlaceStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStill(t)
		plane := w.conn("us-east")
		applied := func(role string) *unstructured.Unstructured {
			obj := newAccount("acme", []any{role})
			obj, err := plane.Dynamic().Resource(resource).Apply(t.Context(), "acme", obj, metav1.ApplyOptions{FieldManager: "user", Force: true})
			require.NoError(t, err)
			return obj
		}
		applied("Tenant")
		_, err := w.c.Adopt(t.Context(), "us-east", Kind().GroupKind(), types.NamespacedName{Name: "acme"})
		require.NoError(t, err)
		stale := applied("Provider")
		applied("Tenant")

		task := w.taskOf(stale)
		task.itself = "us-east"
		require.NoError(t, task.apply(t.Context(), actionUpdate))
		for _, p := range peerNames {
			require.Equal(t, []v1alpha1.AccountRole{v1alpha1.AccountTenant}, w.held(p, "acme"), p)
		}
	})
}
