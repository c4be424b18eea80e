// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// TestEveryFaultAtEveryCall injects each fault into each call of an operation to ap-south or
// us-east, one fault for each run. With -short it leaves calls and peers out. The caller gets a
// true result: after recovery has settled the operation and sweeps have repaired the peers, the
// operation is in effect if it was reported as committed, and is not in effect if it was reported
// as aborted or ended.
func TestEveryFaultAtEveryCall(t *testing.T) {
	faults := []struct {
		name string
		do   regiontest.Action
	}{
		{"drop request", regiontest.DropRequest()},
		{"drop reply", regiontest.DropReply()},
		{"apply late", regiontest.ApplyLate(15 * time.Millisecond)},
		{"500 with retry after", regiontest.Refuse(500, time.Second)},
		{"429 with retry after", regiontest.Refuse(429, time.Second)},
		{"503", regiontest.Refuse(503)},
		{"403", regiontest.Refuse(403)},
		{"409", regiontest.Refuse(409)},
	}
	for _, tc := range crashCases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := distant(newRing(t))
				acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
				for i, fault := range faults {
					// In each case, one of these two peers may hold the primary, and the other
					// never does. With -short, each fault uses only one of them, in turn.
					both := []region.PeerName{"ap-south", "us-east"}
					if testing.Short() {
						both = both[i%2 : i%2+1]
					}
					for _, peer := range both {
						calls := 0
						for ; faultOnce(t, r, acme, tc, peer, calls, fault.do); calls += stride() {
						}
						require.Positive(t, calls, "no call met %s", fault.name)
					}
				}
			})
		})
	}
}

// faultOnce runs the operation with one fault. It returns false if the operation made too few
// calls to meet the fault.
func faultOnce(t *testing.T, r *regiontest.Ring, acme string, tc crashCase, peer region.PeerName, skip int, do regiontest.Action) bool {
	t.Helper()
	key := tc.prepare(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}), acme)
	defer tidy(t, r, key)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{MaxInFlight: time.Nanosecond})
	server := r.Server(peer)
	server.Reset()
	server.Inject(regiontest.Fault{Resource: resourceOf(key).GroupResource(), Skip: skip, Do: do}, far)
	told := tc.run(within(t, 20*time.Second), c, key)
	met := len(server.Requests()) > 0 && calls(server, resourceOf(key).GroupResource()) > skip
	server.Reset()
	server.Inject(far)

	time.Sleep(time.Millisecond) // virtual time: longer than MaxInFlight
	_, err := c.Recover(t.Context())
	require.NoError(t, err)
	requireSettled(t, log)
	awaitClean(t, c)
	inEffect := tc.effect(held(t, r, key))
	_, inDoubt := errors.AsType[*fanout.InDoubtError](told)
	switch {
	case told == nil:
		require.True(t, inEffect, "it was reported as committed (%s at call %d of %s)", do, skip, peer)
	case errors.Is(told, fanout.ErrAborted), errors.Is(told, fanout.ErrEnded):
		require.False(t, inEffect, "it was reported as without effect (%s at call %d of %s): %v", do, skip, peer, told)
	default:
		require.True(t, inDoubt, "%s at call %d of %s: %v", do, skip, peer, told)
	}
	return met
}

func resourceOf(key types.NamespacedName) schema.GroupVersionResource {
	if key.Namespace == "" {
		return fanout.ServiceClusters().Within
	}
	return serviceClusterResource
}

func calls(s *regiontest.Server, gr schema.GroupResource) int {
	n := 0
	for _, request := range s.Requests() {
		if request.GroupResource() == gr {
			n++
		}
	}
	return n
}

// held returns the object in the last peer, or nil. It requires that all peers have an object of
// the name, or none has.
func held(t *testing.T, r *regiontest.Ring, key types.NamespacedName) (found *unstructured.Unstructured) {
	t.Helper()
	for i, peer := range peers {
		conn, err := r.Conn(peer)
		require.NoError(t, err)
		obj, err := conn.Dynamic().Resource(resourceOf(key)).Namespace(key.Namespace).Get(t.Context(), key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			obj, err = nil, nil
		}
		require.NoError(t, err)
		require.True(t, i == 0 || (obj == nil) == (found == nil), "the peers do not agree on %s", key)
		found = obj
	}
	return found
}

// awaitClean repeats an audit with repair until it reports no violation and no work in progress.
func awaitClean(t *testing.T, c *fanout.Coordinator) {
	t.Helper()
	require.Eventually(t, func() bool {
		report, err := c.Audit(t.Context(), true)
		return err == nil && len(report.Violations)+len(report.Pending) == 0
	}, time.Minute, time.Millisecond)
}
