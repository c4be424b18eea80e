// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter"
)

// If the Placement returns ErrUndecided, the Splitter keeps the shards and reports no error. If it
// returns Duplicate, each cluster gets all replicas. If it returns Duplicate without shares, the
// Splitter deletes all shards.
func TestPlacements(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var place atomic.Pointer[splitter.Placement]
		var failed atomic.Int32
		says := func(d splitter.Demand, err error, shares ...splitter.Share) {
			place.Store(new(splitter.Placement(func(*unstructured.Unstructured, []splitter.Cluster) (splitter.Demand, []splitter.Share, error) {
				return d, shares, err
			})))
		}
		says(splitter.Demand{}, fmt.Errorf("%w: wait", splitter.ErrUndecided))
		w := newWorld(t, splitter.Options{
			Place: func(parent *unstructured.Unstructured, clusters []splitter.Cluster) (splitter.Demand, []splitter.Share, error) {
				return (*place.Load())(parent, clusters)
			},
			Observer: &splitter.Observer{Divided: func(_ context.Context, e splitter.DividedEvent) {
				if e.Err != nil {
					failed.Add(1)
				}
			}},
		}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 4))
		shards := func() map[string]int64 {
			w.split.Again()
			w.rest()
			return w.shards()
		}
		require.Empty(t, shards())
		twice := splitter.Demand{Mode: splitter.Duplicate}
		says(twice, nil, splitter.Share{Name: "a"})
		require.Equal(t, map[string]int64{"a": 4}, shards())
		w.works("web--a", 4)

		says(splitter.Demand{}, fmt.Errorf("%w: wait", splitter.ErrUndecided))
		require.Equal(t, map[string]int64{"a": 4}, shards(), "an undecided placement removes nothing")
		require.Zero(t, failed.Load(), "an undecided placement is no error")

		says(twice, nil, splitter.Share{Name: "a", Max: new(int64(0))}, splitter.Share{Name: "b"})
		require.Equal(t, int64(4), shards()["b"])
		require.GreaterOrEqual(t, shards()["a"], int64(3), "the other cluster's replicas are not available yet")
		w.works("web--b", 4)
		require.Equal(t, map[string]int64{"b": 4}, shards())

		says(twice, nil)
		require.Empty(t, shards())
		require.Zero(t, failed.Load())
	})
}

// A weight that cannot be read counts as absent, and no parent waits for a valid one. The Observer
// gets one event each time the label gets such a value.
func TestAWeightThatCannotBeReadStopsNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		w := newWorld(t, splitter.Options{Observer: &splitter.Observer{
			Cluster: func(_ context.Context, e splitter.ClusterEvent) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, e.Cluster+": "+e.Err.Error())
			},
		}}, cluster("a", "2"), cluster("b", "2x"))
		tells := func() []string {
			mu.Lock()
			defer mu.Unlock()
			now := told
			told = nil
			return now
		}
		says := func(value string) string {
			return fmt.Sprintf("b: cluster b: label splitter.atoll.dev/weight is %q, not a whole number below 2^31", value)
		}
		w.create(deployments, deployment("web", 15))
		w.rest()
		require.Equal(t, map[string]int64{"a": 10, "b": 5}, w.shards())
		require.Equal(t, []string{says("2x")}, tells())

		w.clusters.Set(cluster("a", "2"), cluster("b", "2x"), cluster("c", "0"))
		w.rest()
		require.Empty(t, tells(), "already reported")
		w.clusters.Set(cluster("a", "2"), cluster("b", "-2"), cluster("c", "0"))
		w.rest()
		require.Equal(t, []string{says("-2")}, tells())
		w.clusters.Set(cluster("a", "2"), cluster("b", "3"), cluster("c", "0"))
		w.rest()
		require.Empty(t, tells())
		w.clusters.Set(cluster("a", "2"), cluster("b", "-2"), cluster("c", "0"))
		w.rest()
		require.Equal(t, []string{says("-2")}, tells(), "reported again")
	})
}
