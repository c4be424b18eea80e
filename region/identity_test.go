// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Conn never rotates to credentials that may not read the UID of the cluster. Each attempt reports the reason, and
// granting that right lets the rotation succeed.
func TestRotationWithoutTheRightToReadTheIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one", "a", "b")
		c.setBlind("b", true)
		var mu sync.Mutex
		var attempts []RotateEvent
		src := newScripted()
		r := startRingOf(t, src, Options{Observer: &Observer{Rotated: func(_ context.Context, e RotateEvent) {
			mu.Lock()
			defer mu.Unlock()
			attempts = append(attempts, e)
		}}})
		src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "a")})
		conn := connOf(t, r, "eu")
		src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "b")})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		h := conn.Health()
		require.ErrorIs(t, h.Rotation, ErrIdentityUnknown)
		require.ErrorContains(t, h.Rotation, "peer eu: rotate: identity unknown: grant get namespaces/kube-system: ")
		require.NoError(t, h.Identity, "that of the credentials in use is known")
		require.EqualValues(t, 1, h.Generation)
		_, err := conn.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
		require.NoError(t, err)
		mu.Lock()
		require.GreaterOrEqual(t, len(attempts), 60, "the backoff is 10 s at most")
		require.LessOrEqual(t, len(attempts), 75)
		for _, e := range attempts {
			require.ErrorIs(t, e.Err, ErrIdentityUnknown)
		}
		mu.Unlock()

		c.setBlind("b", false)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.NoError(t, conn.Health().Rotation)
		require.EqualValues(t, 2, conn.Health().Generation)
		_, err = conn.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{"token:a", "token:b"}, c.usersSeen())
	})
}

// A reachable peer is healthy, even if its credentials may not read the UID of its cluster; Health.Identity reports
// that.
func TestIdentityUnknownShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one", "a")
		c.setBlind("a", true)
		src := newScripted()
		r := startRing(t, src)
		src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "a")})
		conn := connOf(t, r, "eu")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		h := conn.Health()
		require.Equal(t, Healthy, h.State)
		require.NoError(t, h.Err)
		require.ErrorIs(t, h.Identity, ErrIdentityUnknown)
		_, err := conn.UID(t.Context())
		require.ErrorIs(t, err, ErrIdentityUnknown)
		require.True(t, apierrors.IsForbidden(err), "%v", err)

		c.setDown(true)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, Unhealthy, conn.Health().State)
		require.ErrorIs(t, conn.Health().Identity, ErrIdentityUnknown, "the last answer counts")
		c.setDown(false)
		c.setBlind("a", false)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, Healthy, conn.Health().State)
		require.NoError(t, conn.Health().Identity)
	})
}
