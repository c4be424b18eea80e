// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/splitter/clusterdaemonset"
)

// share owns one key, until the test changes it.
type share struct {
	key     atomic.Value
	changed chan struct{}
}

func (s *share) Owns(key string) bool { return s.key.Load() == key }

func (s *share) Watch(ctx context.Context) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for {
			select {
			case <-s.changed:
			case <-ctx.Done():
				return
			}
			if !yield(1) {
				return
			}
		}
	}
}

// A replica works only on the ClusterDaemonSets that it owns, and takes over others without a further event.
func TestShard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		s := &share{changed: make(chan struct{})}
		s.key.Store("ClusterDaemonSet/default/one")
		w.run(clusterdaemonset.Options{Shard: s}, cluster("a"))
		w.create(sets, agent("one", ""))
		w.create(sets, agent("two", ""))
		w.rest()
		require.Equal(t, []string{"one--a@a"}, w.copies())
		s.key.Store("ClusterDaemonSet/default/two")
		s.changed <- struct{}{}
		w.rest()
		require.Equal(t, []string{"one--a@a", "two--a@a"}, w.copies())
	})
}

// Two Controllers without shares do the same work. They come to rest with the Deployments of one.
func TestTwoControllers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		for range 2 {
			w.run(clusterdaemonset.Options{}, cluster("a"), cluster("b"))
		}
		w.create(sets, agent("agent", ""))
		require.Equal(t, "0/2 False ClustersNotReady: 2 of 2 clusters are not ready: a 0 of 1, b 0 of 1", w.status("agent"))
		w.set(cluster("a"), draining(cluster("b")), cluster("c"))
		w.rest()
		require.Equal(t, []string{"agent--a@a", "agent--c@c"}, w.copies())
		w.Reset()
		w.rest()
		require.Empty(t, w.writes())
		w.remove(sets, "agent")
		w.rest()
		require.Empty(t, w.copies())
		require.Nil(t, w.get(sets, "agent"))
	})
}
