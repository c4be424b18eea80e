// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// distance is how far a region is away in the benchmarks of lists, as between continents. All servers share the
// processors of the client, so that what lists cost them counts as many times as there are regions.
const distance = 80 * time.Millisecond

// BenchmarkList lists the objects of 1 to 10 regions, 20 each, all 80 ms away, beside a list of one of them alone.
func BenchmarkList(b *testing.B) {
	const objects = 20
	w := newWorld(b, 10)
	defer w.close()
	for _, k := range w.keys {
		for i := range objects {
			w.put(k, fmt.Sprintf("o%d", i))
		}
		w.servers[k].Inject(regiontest.Fault{Verb: "list", Times: -1, Do: regiontest.Delay(distance)})
	}
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			list, err := w.clients[w.keys[0]].Resource(configMaps).List(b.Context(), metav1.ListOptions{})
			require.NoError(b, err)
			require.Len(b, list.Items, objects)
		}
	})
	for _, n := range []int{1, 3, 10} {
		b.Run(fmt.Sprintf("merged/regions=%d", n), func(b *testing.B) {
			require.NoError(b, w.set.Put(w.members(w.keys[:n]...)...))
			reader := w.api(aggregate.Options{}).Reader("", configMaps)
			for b.Loop() {
				list, err := reader.ListAll(b.Context(), metav1.ListOptions{})
				require.NoError(b, err)
				require.Len(b, list.Items, n*objects)
			}
		})
	}
}

// BenchmarkWatch measures the time from a write's beginning to its event, over TLS on loopback: a region's own watch and
// the merged one of 10 regions, turn by turn. Medians are in µs.
func BenchmarkWatch(b *testing.B) {
	const regions = 10
	w := newWorld(b, regions)
	defer w.close()
	var members []aggregate.Member
	for _, k := range w.keys {
		kubeconfig, err := w.servers[k].Listen(b.Context())
		require.NoError(b, err)
		creds, err := region.ParseKubeconfig(kubeconfig, region.Trust{})
		require.NoError(b, err)
		conn, err := region.NewConn(region.Peer{Name: region.PeerName(k.Name), Credentials: creds}, region.ConnOptions{})
		require.NoError(b, err)
		members = append(members, aggregate.Member{Region: k, Client: conn.Dynamic()})
	}
	require.NoError(b, w.set.Put(members...))
	ctx, cancel := context.WithCancel(b.Context())
	direct, err := members[0].Client.Resource(configMaps).Watch(ctx, metav1.ListOptions{})
	require.NoError(b, err)
	merged, err := w.api(aggregate.Options{}).Reader("", configMaps).WatchWithContext(ctx, metav1.ListOptions{
		AllowWatchBookmarks: true, SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	require.NoError(b, err)
	require.Equal(b, watch.Bookmark, (<-merged.ResultChan()).Type)
	one, many := measure(b, members[0].Client, direct, "a"), measure(b, members[0].Client, merged, "b")
	var directTimes, mergedTimes []time.Duration
	for i := 0; b.Loop(); i++ {
		// Both see every event; only one is waited for first.
		if i%2 == 0 {
			directTimes = append(directTimes, one())
			<-merged.ResultChan()
		} else {
			mergedTimes = append(mergedTimes, many())
			<-direct.ResultChan()
		}
	}
	b.ReportMetric(float64(median(directTimes).Microseconds()), "direct-µs")
	b.ReportMetric(float64(median(mergedTimes).Microseconds()), "merged-µs")
	direct.Stop()
	cancel()
	for range merged.ResultChan() {
	}
}

// measure returns a func that writes and says how long its event took on w.
func measure(b *testing.B, c dynamic.Interface, w watch.Interface, name string) func() time.Duration {
	client := c.Resource(configMaps).Namespace("default")
	n := 0
	return func() time.Duration {
		n++
		began := time.Now()
		_, err := client.Create(b.Context(), configMap(fmt.Sprint(name, n), "1"), metav1.CreateOptions{})
		require.NoError(b, err)
		<-w.ResultChan()
		return time.Since(began)
	}
}

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[len(d)/2]
}
