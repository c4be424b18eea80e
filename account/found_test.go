// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/loop"
)

// Each test of this file is of a state that TestStates of internal/plans found: docs/evidence/states.md.

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

// An add that another object prevents is tried again after a pause.
func TestAHeldAddPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStill(t)
		wish := w.create(newAccount("acme", []any{"Tenant"}))
		_, err := w.conn("us-east").Dynamic().Resource(resource).Create(t.Context(), newAccount("acme", []any{"Provider"}), metav1.CreateOptions{})
		require.NoError(t, err)
		task := w.taskOf(wish)
		require.NoError(t, task.apply(t.Context(), actionAdd))
		require.Equal(t, v1alpha1.AccountReasonConflict, task.reason)
		require.True(t, task.failed)
	})
}

// An Account is reported as orphaned, even if the Replicator learns of it before it has listed the
// objects of the central plane.
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

// If the central plane is a peer, an edit of the central object that its cache does not show yet is
// not overwritten.
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
