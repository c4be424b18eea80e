// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region"
)

// If a peer is unreachable, the Ring logs the error to Options.Logger, even if the context of Start
// has no logger.
func TestLogger(t *testing.T) {
	lines := logtest.New()
	credentials, err := region.FromConfig(&rest.Config{Host: "https://127.0.0.1:1"})
	require.NoError(t, err)
	source, err := region.FromPeers(region.Peer{Name: "eu-west", Credentials: credentials})
	require.NoError(t, err)
	ring, err := region.NewRing(source, region.Options{Logger: lines.Logger()})
	require.NoError(t, err)
	logtest.Run(t, ring.Start)
	lines.Await(t, "ring", "eu-west", "connection refused")
}

// A Kept logs to KeepOptions.Logger that it uses the kept peers.
func TestKeptLogger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peers.json")
	credentials, err := region.FromConfig(&rest.Config{Host: "https://127.0.0.1:1", BearerToken: "a"})
	require.NoError(t, err)
	source, err := region.FromPeers(region.Peer{Name: "eu-west", Credentials: credentials})
	require.NoError(t, err)
	for _, source := range []region.Source{source, unread{}} {
		lines := logtest.New()
		kept, err := region.Keep(source, path, region.KeepOptions{Logger: lines.Logger(), Wait: time.Millisecond})
		require.NoError(t, err)
		published := make(chan struct{})
		logtest.Run(t, func(ctx context.Context) error {
			return kept.Run(ctx, func(*region.Snapshot) { close(published) })
		})
		<-published
		if _, stale := kept.Since(); stale {
			lines.Await(t, "kept", path, `"peers"=1`)
			return
		}
		require.Eventually(t, func() bool { _, err := os.Stat(path); return err == nil }, time.Minute, time.Millisecond)
	}
	t.Fatal("the kept peers were not used")
}

// unread is a Source that publishes nothing.
type unread struct{}

func (unread) Run(ctx context.Context, _ func(*region.Snapshot)) error {
	<-ctx.Done()
	return nil
}
