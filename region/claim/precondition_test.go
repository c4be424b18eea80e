// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
)

// A claim is deleted only if a live read shows that its ServiceCluster is gone, and only if it is
// still the claim that was read.
func TestOnlyTheClaimOfAServiceClusterThatIsGoneIsDeleted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.cluster("us")
		made := w.conn("us").Dynamic().Resource(claims).Namespace(provider)
		claim, err := made.Create(t.Context(), claimFor(w.stored("us", clusters)), metav1.CreateOptions{})
		require.NoError(t, err)
		cache := loop.NewObjects(w.conn("us").Dynamic(), clusters, loop.ObjectsOptions{})
		go cache.Start(t.Context()) //nolint:errcheck // until the test ends
		passes(time.Second)
		a := &Arbiter{opts: Options{CallTimeout: time.Second}, queue: loop.NewQueue(loop.QueueOptions{})}
		drop := func(claim *unstructured.Unstructured) {
			at := peerState{peer: &peer{name: "us", conn: w.conn("us"), clusters: cache}, contact: fresh, claim: claim}
			require.NoError(t, a.dropClaims(t.Context(), &regionState{key: usEast1, places: []peerState{at}}))
		}
		drop(claim)
		require.NotNil(t, w.stored("us", claims), "the cache lacks a ServiceCluster that exists")

		require.NoError(t, w.conn("us").Dynamic().Resource(clusters).Namespace(provider).Delete(t.Context(), name, metav1.DeleteOptions{}))
		w.unclaim("us")
		next := w.claim("us")
		drop(claim)
		require.Equal(t, next.GetUID(), w.stored("us", claims).GetUID(), "it is another claim")
		w.unclaim("us")
		claim, err = made.Create(t.Context(), claimFor(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
			"namespace": provider, "name": name, "uid": "of-a-cluster-that-is-gone",
		}}}), metav1.CreateOptions{})
		require.NoError(t, err)
		drop(claim)
		require.Nil(t, w.stored("us", claims))
	})
}

// If another arbiter wrote first, the outcome is stale; after any other error it is failed.
func TestWhatWasRecorded(t *testing.T) {
	c := &clerk{scene: &regionState{key: usEast1}, records: &records{ns: "n", last: &unstructured.Unstructured{}}}
	for want, errs := range map[outcome][]error{
		done:   {nil},
		stale:  {apierrors.NewConflict(leases.GroupResource(), name, nil), apierrors.NewAlreadyExists(leases.GroupResource(), name), apierrors.NewNotFound(leases.GroupResource(), name)},
		failed: {errors.New("lost"), apierrors.NewServiceUnavailable("away"), apierrors.NewForbidden(leases.GroupResource(), name, nil)},
	} {
		for _, err := range errs {
			got, told := c.recorded(err)
			require.Equal(t, want, got.outcome, "%v", err)
			require.Equal(t, want == failed, told != nil)
		}
	}
}
