// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
	"github.com/atoll-dev/atoll/wal"
)

// coordinator returns a coordinator for the world's peers, with an Account of the provider.
func (w *world) coordinator() *fanout.Coordinator {
	w.t.Helper()
	types, err := fannedOut()
	require.NoError(w.t, err)
	require.NoError(w.t, w.ring.AddDefinitions(types))
	log, err := wal.Open(filepath.Join(w.t.TempDir(), "log"), wal.Options{})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, log.Close()) })
	c, err := fanout.New(w.ring, log, fanout.Options{Kinds: append(account.Kinds(), Kind()), NoteEvery: -1}) // no periodic writes
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, c.Wait(context.WithoutCancel(w.t.Context()))) })
	require.NoError(w.t, c.InitPeers(w.t.Context()))
	_, err = c.Add(w.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "catalog.kubecarrier.io/v1alpha1", "kind": "Account",
		"metadata": map[string]any{"name": provider}, "spec": map[string]any{"roles": []any{"Provider"}},
	}}, fanout.AddOptions{})
	require.NoError(w.t, err)
	return c
}

func (w *world) status(p region.PeerName) v1alpha1.RegionClaimStatus {
	w.t.Helper()
	require.NotNil(w.t, w.stored(p, claims))
	return statusIn(w.stored(p, claims))
}

// TestBothWaysEndInTheSameStatuses checks that, apart from times and generations, the statuses are
// the same with a central plane and with the fan-out protocol.
func TestBothWaysEndInTheSameStatuses(t *testing.T) {
	t.Parallel()
	ends := func(t *testing.T, do func(w *world)) (statuses []v1alpha1.RegionClaimStatus) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, "eu", "us")
			do(w)
			require.Equal(t, "Bound us", w.statusOf("us"))
			require.Equal(t, "Conflict us", w.statusOf("eu"))
			for _, p := range []region.PeerName{"eu", "us"} {
				s := w.status(p)
				require.Equal(t, s.ObservedGeneration, s.Conditions[0].ObservedGeneration)
				require.NotZero(t, s.Holder.Since)
				// The message contains the time too.
				s.Conditions[0].Message = s.Conditions[0].Message[:len("peer us")]
				statuses = append(statuses, s)
			}
		})
		return statuses
	}
	with := ends(t, func(w *world) {
		w.start(w.api, Options{})
		w.bindTo("us", "eu")
	})
	without := ends(t, func(w *world) {
		w.start(nil, Options{})
		c := w.coordinator()
		_, err := c.Add(w.t.Context(), w.object("RegionClaim", name), fanout.AddOptions{Target: "us"})
		require.NoError(w.t, err)
		_, err = c.Add(w.t.Context(), w.object("RegionClaim", name), fanout.AddOptions{Target: "eu"})
		held, ok := errors.AsType[*fanout.HeldError](err)
		require.True(w.t, ok, "%v", err)
		require.Equal(w.t, region.PeerName("us"), held.Holder)
		passes(3 * time.Second)
	})
	times := cmpopts.IgnoreTypes(metav1.Time{})
	generations := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".ObservedGeneration" }, cmp.Ignore())
	require.Empty(t, cmp.Diff(with, without, times, generations))
}

func TestWithoutAPlaneTheGateFollowsTheProtocol(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.coordinator()
		w.start(nil, Options{})
		w.cluster("us")
		passes(3 * time.Second)
		require.Equal(t, "Pending", w.statusOf("us"), "its claim was created and not adopted")
		require.Equal(t, "Pending RegionUnbound", w.gated("us"))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = c.Start(ctx) })
		passes(2 * time.Minute)
		cancel()
		wg.Wait()
		w.commit()
		passes(3 * time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Conflict us", w.statusOf("eu"), "the guard")
		require.Equal(t, "Ready Bound", w.gated("us"))

		before := writes(w.ring.Server("us")) + writes(w.ring.Server("eu"))
		w.ring.Partition("us", true)
		passes(time.Hour)
		require.Equal(t, "Conflict us", w.statusOf("eu"), "an unreachable peer keeps its region")
		w.ring.Partition("us", false)
		passes(time.Minute)
		require.Equal(t, before, writes(w.ring.Server("us"))+writes(w.ring.Server("eu")))

		_, err := c.Remove(t.Context(), Kind().GroupKind(), types.NamespacedName{Namespace: provider, Name: name}, fanout.RemoveOptions{})
		require.NoError(t, err)
		passes(3 * time.Second)
		require.Equal(t, "Pending RegionUnbound", w.gated("us"))
	})
}

// TestAGuardWhosePeerDoesNotAnswerIsPending starts an Arbiter while the peer of a claim does not
// answer. The claim's guard in another peer is Pending until the Arbiter has listed the claims of the
// silent peer, and in Conflict after that.
func TestAGuardWhosePeerDoesNotAnswerIsPending(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.coordinator()
		_, err := c.Add(t.Context(), w.object("RegionClaim", name), fanout.AddOptions{Target: "us"})
		require.NoError(t, err)
		require.Equal(t, "Bound us", w.statusOf("us"), "written by the operation")
		w.ring.Partition("us", true)
		w.start(nil, Options{})
		passes(time.Minute)
		require.Equal(t, "Pending", w.statusOf("eu"))
		require.Equal(t, string(v1alpha1.RegionClaimReasonPeerUnreachable), w.status("eu").Conditions[0].Reason)
		w.ring.Partition("us", false)
		passes(time.Minute)
		require.Equal(t, "Conflict us", w.statusOf("eu"))
	})
}

// TestWhyNothingIsDecidedIsToldAnew checks that an arbiter updates the reason in its own report,
// even while peers are unreachable.
func TestWhyNothingIsDecidedIsToldAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "ap", "eu", "us")
		w.ring.Partition("ap", true)
		w.ring.Partition("us", true)
		w.start(nil, Options{})
		w.reserved("eu", "us")
		passes(time.Minute)
		require.Equal(t, string(v1alpha1.RegionClaimReasonPeerUnreachable), w.status("eu").Conditions[0].Reason)
		w.ring.Partition("us", false)
		passes(time.Minute)
		require.Equal(t, string(v1alpha1.RegionClaimReasonPending), w.status("eu").Conditions[0].Reason, "us is reachable; ap does not matter")
		before := writes(w.ring.Server("eu"))
		passes(time.Hour)
		require.Equal(t, before, writes(w.ring.Server("eu")))
	})
}
