// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// jwt returns a token that is valid from one time to the other, with an invalid signature.
func jwt(from, to time.Time) string {
	claims := fmt.Sprintf(`{"iat":%d,"exp":%d}`, from.Unix(), to.Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".e30"
}

// requireExpiry requires that credentials are valid from one time to the other.
func requireExpiry(t *testing.T, h Health, from, to time.Time) {
	t.Helper()
	require.Equal(t, from.Unix(), h.Issued.Unix())
	require.Equal(t, to.Unix(), h.Expires.Unix())
}

// A Conn shows when its credentials expire before any request, and at once after a rotation.
func TestExpiryOfCredentials(t *testing.T) {
	now := time.Now()
	first, second := jwt(now, now.Add(time.Hour)), jwt(now, now.Add(2*time.Hour))
	c := newCluster("one", first, second)
	conn := newConn(t, c.credentials(t, first), ConnOptions{})
	requireExpiry(t, conn.Health(), now, now.Add(time.Hour))
	require.NoError(t, conn.Rotate(t.Context(), c.credentials(t, second)))
	requireExpiry(t, conn.Health(), now, now.Add(2*time.Hour))

	opaque := newConn(t, newCluster("two", "opaque").credentials(t, "opaque"), ConnOptions{})
	require.True(t, opaque.Health().Expires.IsZero())
	require.True(t, opaque.Health().Issued.IsZero())
}

// The Observer gets the expiry with each probe, also if the peer rejects the credentials. After the file of a token was
// replaced, which is no rotation, it gets the new expiry.
func TestProbesReportTheExpiryOfAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		write := func(from, to time.Time) {
			require.NoError(t, os.WriteFile(file, []byte(jwt(from, to)), 0o600))
		}
		begin := time.Now()
		write(begin, begin.Add(time.Minute))
		c := newCluster("one", "another token")
		creds, err := FromConfig(&rest.Config{Host: "https://one.test", BearerTokenFile: file, Transport: c.door})
		require.NoError(t, err)
		source, err := FromPeers(Peer{Name: "eu", Credentials: creds})
		require.NoError(t, err)
		var last atomic.Pointer[ProbeEvent]
		ring, err := NewRing(source, Options{Observer: &Observer{Probed: func(_ context.Context, e ProbeEvent) { last.Store(&e) }}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- ring.Start(ctx) }()
		synctest.Wait()
		require.Error(t, last.Load().Err)
		requireExpiry(t, last.Load().Health, begin, begin.Add(time.Minute))

		write(begin.Add(time.Minute), begin.Add(time.Hour))
		time.Sleep(15 * time.Second)
		synctest.Wait()
		requireExpiry(t, last.Load().Health, begin.Add(time.Minute), begin.Add(time.Hour))
		cancel()
		require.NoError(t, <-ended)
	})
}
