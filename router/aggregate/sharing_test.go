// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// sharing starts a Sharing and returns it with a func that ends it.
func sharing(ctx context.Context, t *testing.T, opts aggregate.SharingOptions) (*aggregate.Sharing, context.CancelFunc) {
	t.Helper()
	s, err := aggregate.NewSharing(opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(ctx)
	go func() { _ = s.Start(ctx) }()
	<-s.Started()
	return s, cancel
}

// watchAs begins a watch as JSON with an API of its own, as a server does for each request.
func (w *world) watchAs(ctx context.Context, opts aggregate.Options, list metav1.ListOptions) watch.Interface {
	w.t.Helper()
	stream, err := throughJSON{w.api(opts).Reader("", configMaps)}.WatchWithContext(ctx, list)
	require.NoError(w.t, err)
	return stream
}

// requests counts the requests of a verb that a region has received.
func (w *world) requests(i int, verb string) int {
	n := 0
	for _, r := range w.servers[w.keys[i]].Requests() {
		if r.Verb == verb && r.Resource == "configmaps" {
			n++
		}
	}
	return n
}

func TestWatchesOfOneIdentityAreShared(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world, ctx context.Context) {
		shared, end := sharing(ctx, t, aggregate.SharingOptions{})
		defer end()
		w.put(w.keys[0], "a", "b")
		w.put(w.keys[1], "c")
		opts := aggregate.Options{Sharing: shared, Identity: "user", Keys: aggregate.RandomKeyring(), Bookmark: time.Hour}
		for _, s := range w.servers {
			s.Inject(regiontest.Fault{Verb: "list", Times: -1, Do: regiontest.Delay(time.Second)}) // so that the watches begin together
		}
		var streams []watch.Interface
		for range 20 {
			streams = append(streams, w.watchAs(ctx, opts, initial()))
		}
		time.Sleep(10 * time.Second)
		for _, s := range streams {
			got := arrived(s)
			require.ElementsMatch(t, []string{"ADDED r0.loodse/a", "ADDED r0.loodse/b", "ADDED r1.loodse/c", "end of initial events of ConfigMap"}, got)
			require.Equal(t, "end of initial events of ConfigMap", got[3])
		}
		for i := range 2 {
			require.Equal(t, 1, w.requests(i, "watch"))
			require.LessOrEqual(t, w.requests(i, "list"), 2+2, "those of the shared watch, and two for one object, of the first watch and of all others")
		}
		w.put(w.keys[1], "d")
		require.NoError(t, w.clients[w.keys[0]].Resource(configMaps).Namespace("default").Delete(ctx, "a", metav1.DeleteOptions{}))
		for _, s := range streams {
			require.ElementsMatch(t, []string{"DELETED r0.loodse/a", "ADDED r1.loodse/d"}, arrived(s))
		}
		late := w.watchAs(ctx, opts, initial())
		time.Sleep(10 * time.Second)
		require.ElementsMatch(t, []string{"ADDED r0.loodse/b", "ADDED r1.loodse/c", "ADDED r1.loodse/d", "end of initial events of ConfigMap"}, arrived(late))
		require.Equal(t, 1, w.requests(0, "watch"), "a later watch needs no list")
		require.LessOrEqual(t, w.requests(0, "list"), 2+3)
	})
}

// Watches are shared only if the identity is the same, and there is one.
func TestOtherIdentitiesShareNothing(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world, ctx context.Context) {
		shared, end := sharing(ctx, t, aggregate.SharingOptions{})
		defer end()
		w.put(w.keys[0], "a")
		keys := aggregate.RandomKeyring()
		want := 0
		for _, identity := range []string{"", "", "user", "user and group", "user"} {
			stream := w.watchAs(ctx, aggregate.Options{Sharing: shared, Identity: identity, Keys: keys, Bookmark: time.Hour}, initial())
			require.Equal(t, []string{"ADDED r0.loodse/a", "end of initial events of ConfigMap"}, arrived(stream), identity)
			if want++; want == 5 {
				want = 4
			}
			require.Equal(t, want, w.requests(0, "watch"), identity)
		}
		selected := initial()
		selected.LabelSelector = "app=test,x!=y"
		stream := w.watchAs(ctx, aggregate.Options{Sharing: shared, Identity: "user", Keys: keys}, selected)
		require.Equal(t, []string{"ADDED r0.loodse/a", "end of initial events of ConfigMap"}, arrived(stream))
		require.Equal(t, 5, w.requests(0, "watch"), "another selector")
	})
}

// A watch that was interrupted continues in the same process without a list of the objects.
func TestAResumedSharedWatchNeedsNoList(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world, ctx context.Context) {
		shared, end := sharing(ctx, t, aggregate.SharingOptions{})
		defer end()
		opts := aggregate.Options{Sharing: shared, Identity: "user", Keys: aggregate.RandomKeyring(), Bookmark: time.Hour}
		w.put(w.keys[0], "a")
		first := w.watchAs(ctx, opts, initial())
		var rv string
		for range 2 {
			rv = resourceVersion(t, <-first.ResultChan())
		}
		first.Stop()
		w.put(w.keys[0], "b", "c")
		synctest.Wait()
		before := w.requests(0, "list")
		resume := metav1.ListOptions{ResourceVersion: rv, LabelSelector: "app=test", AllowWatchBookmarks: true}
		again := w.watchAs(ctx, opts, resume)
		require.Equal(t, []string{"ADDED r0.loodse/b", "ADDED r0.loodse/c"}, arrived(again))
		require.Equal(t, before+1, w.requests(0, "list"), "for one object, as the caller")
		require.Equal(t, 1, w.requests(0, "watch"))
		again.Stop()
		time.Sleep(3 * time.Minute)
		third := w.watchAs(ctx, opts, resume)
		require.Equal(t, []string{"ADDED r0.loodse/b", "ADDED r0.loodse/c"}, arrived(third), "after Linger it has its own watch")
		require.Equal(t, 2, w.requests(0, "watch"))
	})
}

func resourceVersion(t *testing.T, e watch.Event) string {
	t.Helper()
	o, ok := e.Object.(metav1.Object)
	require.True(t, ok, "%T", e.Object)
	return o.GetResourceVersion()
}

// The initial events of a watch have every write before the request, although the watch that it shares is late.
func TestSharedInitialEventsAreFresh(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world, ctx context.Context) {
		shared, end := sharing(ctx, t, aggregate.SharingOptions{})
		defer end()
		opts := aggregate.Options{Sharing: shared, Identity: "user", Keys: aggregate.RandomKeyring(), Bookmark: time.Hour}
		w.put(w.keys[0], "a")
		require.Len(t, arrived(w.watchAs(ctx, opts, initial())), 2)
		server := w.servers[w.keys[0]]
		server.Inject(regiontest.Fault{Verb: "watch", Do: regiontest.Delay(3 * time.Second)})
		server.Partition(true)
		server.Partition(false) // ends the watch; the next one is late
		time.Sleep(time.Second)
		w.put(w.keys[0], "b")
		late := w.watchAs(ctx, opts, initial())
		require.Empty(t, arrived(late))
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"ADDED r0.loodse/a", "ADDED r0.loodse/b", "end of initial events of ConfigMap"}, arrived(late))
	})
}

// A right that was revoked ends the events within Recheck, and a caller without the right gets no objects from the cache.
func TestASharedWatchNeedsTheRightToRead(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world, ctx context.Context) {
		shared, end := sharing(ctx, t, aggregate.SharingOptions{})
		defer end()
		opts := aggregate.Options{Sharing: shared, Identity: "user", Keys: aggregate.RandomKeyring(), Bookmark: time.Hour}
		w.put(w.keys[0], "a")
		stream := w.watchAs(ctx, opts, initial())
		require.Equal(t, []string{"ADDED r0.loodse/a", "end of initial events of ConfigMap"}, arrived(stream))
		for _, verb := range []string{"list", "watch"} {
			w.servers[w.keys[0]].Inject(regiontest.Fault{Verb: verb, Resource: configMaps.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusForbidden)})
		}
		late := w.watchAs(ctx, opts, initial())
		require.Equal(t, []string{"ERROR Forbidden", "end"}, arrived(late))
		time.Sleep(time.Minute + time.Second)
		w.put(w.keys[0], "b")
		time.Sleep(time.Minute)
		require.Empty(t, arrived(stream))
	})
}

// If a cache has no room, or the Sharing ends, its watches continue alone and miss nothing.
func TestAWatchContinuesWithoutItsCache(t *testing.T) {
	for _, room := range []int64{0, 1000} {
		bubble(t, 1, func(t *testing.T, w *world, ctx context.Context) {
			lines := make(chan string, 10)
			logger := funcr.New(func(_, line string) { lines <- line }, funcr.Options{})
			shared, end := sharing(ctx, t, aggregate.SharingOptions{Bytes: room, Logger: logger})
			opts := aggregate.Options{Sharing: shared, Identity: "user", Keys: aggregate.RandomKeyring(), Bookmark: time.Hour}
			w.put(w.keys[0], "a")
			streams := []watch.Interface{w.watchAs(ctx, opts, initial()), w.watchAs(ctx, opts, initial())}
			for _, s := range streams {
				require.Equal(t, []string{"ADDED r0.loodse/a", "end of initial events of ConfigMap"}, arrived(s))
			}
			if room == 0 {
				end()
			}
			var want []string
			for i := range 10 {
				name := fmt.Sprintf("b%d", i)
				w.put(w.keys[0], name)
				want = append(want, "ADDED r0.loodse/"+name)
			}
			time.Sleep(time.Minute)
			for _, s := range streams {
				require.Equal(t, want, arrived(s))
			}
			require.Greater(t, w.requests(0, "watch"), 2)
			if room != 0 {
				require.Contains(t, <-lines, "SharingOptions.Bytes has no room")
			}
			end()
		})
	}
}

// A consumer that falls behind further than the cache remembers continues alone, or loses its watch. The others do not
// wait for it.
func TestASlowConsumerOfASharedWatch(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world, ctx context.Context) {
		shared, end := sharing(ctx, t, aggregate.SharingOptions{})
		defer end()
		opts := aggregate.Options{Sharing: shared, Identity: "user", Keys: aggregate.RandomKeyring(), Bookmark: time.Hour, Patience: time.Hour}
		w.put(w.keys[0], "a")
		slow, fast := w.watchAs(ctx, opts, initial()), w.watchAs(ctx, opts, initial())
		require.Len(t, arrived(slow), 2)
		require.Len(t, arrived(fast), 2)
		const events = 1500
		for i := range events {
			w.put(w.keys[0], fmt.Sprintf("b%d", i))
			require.Len(t, arrived(fast), 1)
		}
		got := arrived(slow)
		time.Sleep(time.Minute)
		got = append(got, arrived(slow)...)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(got))), events, "every object was added once")
	})
}

// A region that moves to another cluster, or leaves and returns, is repaired as for a watch of its own.
func TestASharedRegionMoves(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world, ctx context.Context) {
		shared, end := sharing(ctx, t, aggregate.SharingOptions{})
		defer end()
		opts := aggregate.Options{Sharing: shared, Identity: "user", Keys: aggregate.RandomKeyring(), Bookmark: time.Hour}
		w.put(w.keys[0], "a", "b")
		stream := w.watchAs(ctx, opts, initial())
		time.Sleep(time.Second)
		require.ElementsMatch(t, []string{"ADDED r0.loodse/a", "ADDED r0.loodse/b", "end of initial events of ConfigMap"}, arrived(stream))
		moved := w.members(w.keys...)
		other := regiontest.NewServer(regiontest.Options{Name: "other"})
		defer other.Close()
		require.NoError(t, other.Load(w.servers[w.keys[0]].Save()))
		w.servers[w.keys[0]] = other
		moved[0] = w.members(w.keys[0])[0]
		moved[0].Cluster = "other"
		require.NoError(t, w.set.Put(moved...))
		time.Sleep(time.Second)
		require.Empty(t, arrived(stream), "the other cluster has the same objects")
		require.NoError(t, w.set.Put(moved[0]))
		require.Empty(t, arrived(stream))
		require.NoError(t, w.set.Put(moved[1]))
		require.ElementsMatch(t, []string{"DELETED r0.loodse/a", "DELETED r0.loodse/b"}, arrived(stream))
	})
}

// A region leaves while a consumer has a part of the shared initial events. Nothing records which part, so the consumer
// has to list.
func TestARegionLeavesDuringSharedInitialEvents(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world, ctx context.Context) {
		shared, end := sharing(ctx, t, aggregate.SharingOptions{})
		defer end()
		opts := aggregate.Options{Sharing: shared, Identity: "user", Keys: aggregate.RandomKeyring(), Bookmark: time.Hour}
		const objects = 60 // so many that the watch notices the change before it has delivered them all
		for i := range objects {
			w.put(w.keys[0], fmt.Sprintf("o%02d", i))
		}
		require.Len(t, arrived(w.watchAs(ctx, opts, initial())), objects+1)
		stream := w.watchAs(ctx, opts, initial())
		require.Equal(t, "ADDED r0.loodse/o00", describe(<-stream.ResultChan()))
		require.NoError(t, w.set.Put(w.members(w.keys[1])...))
		got := arrived(stream)
		require.Equal(t, []string{"ERROR Expired", "end"}, got[len(got)-2:])
		require.Less(t, len(got), objects)
	})
}

func TestSharingStartsOnce(t *testing.T) {
	s, err := aggregate.NewSharing(aggregate.SharingOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, s.Start(ctx))
	require.ErrorContains(t, s.Start(ctx), "started before")
	for _, opts := range []aggregate.SharingOptions{{Bytes: -1}, {Linger: -1}, {Recheck: -1}} {
		_, err := aggregate.NewSharing(opts)
		require.ErrorContains(t, err, "want a positive")
	}
}
