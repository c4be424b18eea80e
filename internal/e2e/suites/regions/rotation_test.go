// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regions_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/region"
)

// rotations tells how the ring of this process fared with new credentials of eu-west.
type rotations chan region.RotateEvent

// note keeps the newest event for who waits for it.
func (r rotations) note(_ context.Context, e region.RotateEvent) {
	if e.Peer != "eu-west" {
		return
	}
	select {
	case <-r:
	default:
	}
	r <- e
}

// rotate changes the kubeconfig of eu-west a hundred times, while clients that were
// made before the first change go on. None of their requests fails.
func rotate(t *testing.T, w *world, p *program, rotated rotations) {
	conn, err := p.loops.Load().ring.Conn("eu-west")
	require.NoError(t, err)
	namespace := conn.Dynamic().Resource(namespaces)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var requests atomic.Int64
	failures := make(chan error, 4)
	var load sync.WaitGroup
	for range cap(failures) {
		load.Go(func() {
			for ctx.Err() == nil {
				// Not ctx: its end is not a failure.
				if _, err := namespace.Get(t.Context(), "loodse", metav1.GetOptions{}); err != nil {
					failures <- err
					return
				}
				requests.Add(1)
			}
		})
	}
	var slowest time.Duration
	for range 100 {
		next := kubeconfig(t, w.euWest)
		select {
		case <-rotated: // of an earlier change
		default:
		}
		start := time.Now()
		w.store(t, "eu-west", next)
		select {
		case e := <-rotated:
			require.NoError(t, e.Err)
		case err := <-failures:
			t.Fatalf("after %d requests: %v", requests.Load(), err)
		case <-time.After(soon):
			t.Fatal("a changed Secret was not taken up")
		}
		slowest = max(slowest, time.Since(start))
	}
	cancel()
	load.Wait()
	select {
	case err := <-failures:
		t.Fatalf("after %d requests: %v", requests.Load(), err)
	default:
	}
	t.Logf("%d requests during 100 rotations; the slowest took %s", requests.Load(), slowest)
	w.awaitPeers(t, "eu-west")
}
