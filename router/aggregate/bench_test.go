// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
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

// distance is the delay of a region in the benchmarks of lists: about the delay between continents. All servers run on
// the client's processors, so the time of a merged list includes the work of each server.
const distance = 80 * time.Millisecond

// BenchmarkList lists all objects of regions with a delay of 80 ms in three ways, in turn: (1) one region alone, a
// different one each round; (2) all regions at once by separate clients; (3) the merged list. "ratio" is the median of
// the slowest single region divided by the median of merged lists. "at-once-ratio" is the median of the second way
// divided by the median of merged lists: (2) and (3) wait for as many answers and decode as many objects, with the
// same processors.
func BenchmarkList(b *testing.B) {
	for _, objects := range []int{20, 500} {
		w := newWorld(b, 10)
		for _, k := range w.keys {
			for i := range objects {
				w.put(k, fmt.Sprintf("o%d", i))
			}
			w.servers[k].Inject(regiontest.Fault{Verb: "list", Times: -1, Do: regiontest.Delay(distance)})
		}
		for _, regions := range []int{1, 3, 10} {
			b.Run(fmt.Sprintf("regions=%d/objects=%d", regions, objects), func(b *testing.B) { listInTurn(b, w, regions, objects) })
		}
		w.close()
	}
}

func listInTurn(b *testing.B, w *world, regions, objects int) {
	keys := w.keys[:regions]
	require.NoError(b, w.set.Put(w.members(keys...)...))
	reader := w.api(aggregate.Options{}).Reader("", configMaps)
	single := make([][]time.Duration, regions)
	var atOnce, merged []time.Duration
	for i := 0; b.Loop(); i++ {
		single[i%regions] = append(single[i%regions], timed(func() { w.list(b, keys[i%regions], objects) }))
		atOnce = append(atOnce, timed(func() {
			var wg sync.WaitGroup
			for _, k := range keys {
				wg.Go(func() { w.list(b, k, objects) })
			}
			wg.Wait()
		}))
		merged = append(merged, timed(func() {
			list, err := reader.ListAll(b.Context(), metav1.ListOptions{})
			require.NoError(b, err)
			require.Len(b, list.Items, regions*objects)
		}))
	}
	slowest := time.Duration(0)
	for _, times := range single {
		slowest = max(slowest, median(times))
	}
	b.ReportMetric(float64(median(merged)), "ns/op")
	b.ReportMetric(float64(slowest)/float64(median(merged)), "ratio")
	b.ReportMetric(float64(median(atOnce))/float64(median(merged)), "at-once-ratio")
}

// list lists one region with that region's own client.
func (w *world) list(b *testing.B, k region.Key, objects int) {
	list, err := w.clients[k].Resource(configMaps).List(b.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != objects {
		b.Errorf("%d objects, %v", len(list.Items), err)
	}
}

func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// BenchmarkWatch measures the time from the start of a write to its event, over TLS on loopback, in turn for a
// region's own watch and for the merged watch of 10 regions. Medians are in µs; the ratio is the direct median
// divided by the merged one.
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
		// Both watches receive every event. The measured watch is read first.
		if i%2 == 0 {
			directTimes = append(directTimes, one())
			<-merged.ResultChan()
		} else {
			mergedTimes = append(mergedTimes, many())
			<-direct.ResultChan()
		}
	}
	b.ReportMetric(float64(median(directTimes))/float64(max(median(mergedTimes), 1)), "ratio")
	b.ReportMetric(float64(median(directTimes).Microseconds()), "direct-µs")
	b.ReportMetric(float64(median(mergedTimes).Microseconds()), "merged-µs")
	direct.Stop()
	cancel()
	for range merged.ResultChan() {
	}
}

// measure returns a func that writes an object and returns the time until the event of the write arrives at w.
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
