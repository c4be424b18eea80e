// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A peer whose credentials are withheld is listed and not reached, even by clients that exist already. Its engagement
// ends, and starts at once when it gets credentials again.
func TestWithheldCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := newCluster("one", "a")
		src := newScripted()
		r := startRing(t, src)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		var running int
		go func() {
			ended <- Engage(ctx, r, func(ctx context.Context, _ *Conn) error {
				running++
				<-ctx.Done()
				running--
				return nil
			})
		}()
		usable := Peer{Name: "eu", Credentials: one.credentials(t, "a")}
		withheld := Peer{Name: "eu", Credentials: Withheld(errors.New("is a master"))}
		for range 3 {
			src.publish(t, usable)
			conn := connOf(t, r, "eu")
			_, err := conn.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, 1, running)

			src.publish(t, withheld)
			require.Equal(t, 1, r.Snapshot().Len())
			_, err = r.Conn("eu")
			require.ErrorContains(t, err, "peer eu: connect: is a master")
			_, err = conn.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
			require.ErrorIs(t, err, ErrUnknownPeer)
			require.Zero(t, running)
			time.Sleep(10 * time.Minute) // the backoff of the engagement is at its maximum
		}
		require.Error(t, Withheld(nil).check())
		cancel()
		require.NoError(t, <-ended)
	})
}

// If Peer.UID is set, another cluster receives no request except the read of its UID.
func TestNothingIsSentToAnotherCluster(t *testing.T) {
	one, two := newCluster("one", "a"), newCluster("two", "a")
	conn, err := NewConn(Peer{Name: "eu", UID: "one", Credentials: two.credentials(t, "a")}, ConnOptions{})
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.StreamConfig()
	require.ErrorIs(t, err, ErrUnavailable)
	for range 2 {
		var attempt Attempt
		_, err = conn.Dynamic().Resource(widgets).Create(WithAttempt(t.Context(), &attempt), widget("w"), metav1.CreateOptions{})
		require.ErrorIs(t, err, ErrOtherCluster)
		require.False(t, attempt.Sent())
		_, err = conn.UID(t.Context())
		require.ErrorIs(t, err, ErrOtherCluster)
	}
	config := conn.Config()
	config.BearerToken = "a"
	api, err := APIFor(config)
	require.NoError(t, err)
	_, err = api.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
	require.ErrorIs(t, err, ErrOtherCluster)
	require.Empty(t, two.usersSeen())

	require.NoError(t, conn.Rotate(t.Context(), one.credentials(t, "a")))
	_, err = conn.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = conn.StreamConfig()
	require.NoError(t, err)
	conn.Close()
	_, err = conn.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
	require.ErrorIs(t, err, ErrUnknownPeer)

	// A 401 of the request that reads the UID makes the Source read newer credentials too.
	refreshed := 0
	refused, err := NewConn(Peer{Name: "eu", UID: "one", Credentials: one.credentials(t, "old")}, ConnOptions{Refresh: func() { refreshed++ }})
	require.NoError(t, err)
	defer refused.Close()
	_, err = refused.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
	require.True(t, apierrors.IsUnauthorized(err), "%v", err)
	require.Equal(t, 1, refreshed)
}

// Health shows why newer credentials are not in use, until they are.
func TestFailedRotationShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := newCluster("one", "a", "b"), newCluster("two", "a")
		src := newScripted()
		r := startRing(t, src)
		src.publish(t, Peer{Name: "eu", UID: "one", Credentials: one.credentials(t, "a")})
		conn := connOf(t, r, "eu")
		require.NoError(t, conn.Health().Rotation)
		src.publish(t, Peer{Name: "eu", UID: "one", Credentials: two.credentials(t, "a")})
		require.ErrorIs(t, conn.Health().Rotation, ErrOtherCluster)
		require.Equal(t, Healthy, conn.Health().State)
		src.publish(t, Peer{Name: "eu", UID: "one", Credentials: one.credentials(t, "b")})
		require.NoError(t, conn.Health().Rotation)
		require.EqualValues(t, 2, conn.Health().Generation)

		// The same name with another UID is another peer.
		src.publish(t, Peer{Name: "eu", UID: "two", Credentials: two.credentials(t, "a")})
		require.NotSame(t, conn, connOf(t, r, "eu"))
		require.Equal(t, Healthy, connOf(t, r, "eu").Health().State)
	})
}
