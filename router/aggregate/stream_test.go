// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// initial returns options that request the initial events and the bookmark that ends them.
func initial() metav1.ListOptions {
	return metav1.ListOptions{SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true, LabelSelector: "app=test"}
}

// bubble runs f with regions in virtual time, and ends all watches afterwards.
func bubble(t *testing.T, regions int, f func(t *testing.T, w *world, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, regions)
		defer w.close()
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			synctest.Wait()
		}()
		f(t, w, ctx)
	})
}

// arrived returns the events that can be received at once.
func arrived(w watch.Interface) []string {
	var events []string
	for {
		synctest.Wait()
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				return append(events, "end")
			}
			events = append(events, describe(e))
		default:
			return events
		}
	}
}

func describe(e watch.Event) string {
	o, ok := e.Object.(*unstructured.Unstructured)
	switch {
	case e.Type == watch.Error:
		return fmt.Sprintf("ERROR %s", apierrors.ReasonForError(apierrors.FromObject(e.Object)))
	case !ok:
		return fmt.Sprintf("%s %T", e.Type, e.Object)
	case e.Type == watch.Bookmark && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "":
		return "end of initial events of " + o.GetKind()
	case e.Type == watch.Bookmark:
		return string(e.Type) + " of " + o.GetKind()
	default:
		return string(e.Type) + " " + id(o)
	}
}

func TestInitialEventsEndOnceAllRegionsAreThrough(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world, ctx context.Context) {
		w.put(w.keys[0], "a")
		w.put(w.keys[1], "b")
		w.servers[w.keys[1]].Partition(true)
		stream, err := w.api(aggregate.Options{}).Reader("", configMaps).WatchWithContext(ctx, initial())
		require.NoError(t, err)
		best, err := w.api(aggregate.Options{}).Reader("", configMaps).WatchWithContext(partial(ctx), initial())
		require.NoError(t, err)
		require.Equal(t, []string{"ADDED r0.loodse/a"}, arrived(stream))
		require.Equal(t, []string{"ADDED r0.loodse/a"}, arrived(best), "whatever the policy")
		w.servers[w.keys[1]].Partition(false)
		time.Sleep(time.Minute - time.Second)
		require.Equal(t, []string{"ADDED r1.loodse/b", "end of initial events of ConfigMap"}, arrived(stream))
		require.Equal(t, []string{"ADDED r1.loodse/b", "end of initial events of ConfigMap"}, arrived(best))
	})
}

// Until the initial events have ended, the kind of the objects may be unknown. An informer refuses a bookmark
// without a kind, so the watch sends none.
func TestNoBookmarkBeforeTheInitialEventsEnd(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world, ctx context.Context) {
		for _, s := range w.servers {
			s.Partition(true)
		}
		stream, err := w.api(aggregate.Options{}).Reader("", configMaps).WatchWithContext(ctx, initial())
		require.NoError(t, err)
		require.Empty(t, arrived(stream))
		require.NoError(t, w.set.Put(w.members(w.keys[0])...)) // the unreachable region leaves
		for range 10 {
			time.Sleep(time.Minute)
			require.Empty(t, arrived(stream))
		}
		w.servers[w.keys[0]].Partition(false)
		var events []string
		for len(events) == 0 {
			time.Sleep(time.Second)
			events = arrived(stream)
		}
		require.Equal(t, []string{"end of initial events of ConfigMap"}, events)
	})
}

// No bookmark is sent before all regions have delivered their initial events, even if one of them has: until
// then the consumer's state is incomplete.
func TestNoBookmarkInTheMiddleOfTheInitialEvents(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world, ctx context.Context) {
		w.put(w.keys[0], "a")
		w.servers[w.keys[1]].Partition(true)
		stream, err := w.api(aggregate.Options{}).Reader("", configMaps).WatchWithContext(ctx, initial())
		require.NoError(t, err)
		require.Equal(t, []string{"ADDED r0.loodse/a"}, arrived(stream))
		for range 10 { // the region itself sends bookmarks
			time.Sleep(time.Minute)
			require.Empty(t, arrived(stream))
		}
	})
}

// A watch that resumes from a version also sends no bookmark before it has reached a region: it does not know
// the kind.
func TestNoBookmarkOfNoKind(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world, ctx context.Context) {
		a, b := w.keys[0], w.keys[1]
		w.put(a, "a")
		require.NoError(t, w.set.Put(w.members(a)...))
		reader := w.api(aggregate.Options{}).Reader("", configMaps)
		list, err := reader.ListAll(ctx, metav1.ListOptions{LabelSelector: "app=test"})
		require.NoError(t, err)
		for _, s := range w.servers {
			s.Partition(true)
		}
		stream, err := reader.WatchWithContext(ctx, metav1.ListOptions{
			LabelSelector: "app=test", AllowWatchBookmarks: true, ResourceVersion: list.GetResourceVersion(),
		})
		require.NoError(t, err)
		require.Empty(t, arrived(stream))
		require.NoError(t, w.set.Put(w.members(a, b)...))
		require.Empty(t, arrived(stream))
		require.NoError(t, w.set.Put(w.members(a)...)) // the unreachable region leaves
		for range 10 {
			time.Sleep(time.Minute)
			require.Empty(t, arrived(stream))
		}
		w.servers[a].Partition(false)
		time.Sleep(100 * time.Second)
		require.Equal(t, []string{"BOOKMARK of ConfigMap"}, arrived(stream))
	})
}

func TestRegionsJoinAndLeaveWithoutCuttingTheStream(t *testing.T) {
	for _, withhold := range []bool{false, true} {
		bubble(t, 2, func(t *testing.T, w *world, ctx context.Context) {
			a, b := w.keys[0], w.keys[1]
			w.put(a, "a")
			w.put(b, "b1", "b2")
			require.NoError(t, w.set.Put(w.members(a)...))
			stream, err := w.api(aggregate.Options{Withhold: withhold}).Reader("", configMaps).WatchWithContext(ctx, initial())
			require.NoError(t, err)
			require.Equal(t, []string{"ADDED r0.loodse/a", "end of initial events of ConfigMap"}, arrived(stream))
			require.NoError(t, w.set.Put(w.members(a, b)...))
			require.Equal(t, []string{"ADDED r1.loodse/b1", "ADDED r1.loodse/b2"}, arrived(stream))
			require.NoError(t, w.set.Put(w.members(a)...))
			if withhold {
				require.Empty(t, arrived(stream))
				require.NoError(t, w.clients[b].Resource(configMaps).Namespace("default").Delete(ctx, "b1", metav1.DeleteOptions{}))
				require.NoError(t, w.set.Put(w.members(a, b)...))
				require.Equal(t, []string{"DELETED r1.loodse/b1"}, arrived(stream))
				return
			}
			require.Equal(t, []string{"DELETED r1.loodse/b1", "DELETED r1.loodse/b2"}, arrived(stream))
		})
	}
}

// A version covers exactly the delivered events: a watch that resumes from it neither misses nor repeats an
// event.
func TestResume(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world, ctx context.Context) {
		a, b := w.keys[0], w.keys[1]
		w.put(a, "a1")
		reader := w.api(aggregate.Options{}).Reader("", configMaps)
		list, err := reader.ListAll(ctx, metav1.ListOptions{LabelSelector: "app=test"})
		require.NoError(t, err)
		opts := metav1.ListOptions{LabelSelector: "app=test", ResourceVersion: list.GetResourceVersion()}
		first, err := reader.WatchWithContext(ctx, opts)
		require.NoError(t, err)
		synctest.Wait()
		w.put(a, "a2")
		w.put(b, "b1")
		e := <-first.ResultChan()
		o, ok := e.Object.(*unstructured.Unstructured)
		require.True(t, ok)
		got := []string{describe(e)}
		first.Stop()
		opts.ResourceVersion = o.GetResourceVersion()
		second, err := reader.WatchWithContext(ctx, opts)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"ADDED r0.loodse/a2", "ADDED r1.loodse/b1"}, append(got, arrived(second)...))

		// A watch cannot resume from a version that a region has compacted, or from a version of a region that has
		// left.
		w.put(b, "b2")
		w.servers[b].Compact()
		w.put(b, "b3")
		w.servers[b].Compact()
		third, err := reader.WatchWithContext(ctx, opts)
		require.NoError(t, err)
		events := arrived(third) // events of the other region may come first
		require.Equal(t, []string{"ERROR Expired", "end"}, events[len(events)-2:])
		require.NoError(t, w.set.Put(w.members(a)...))
		_, err = reader.WatchWithContext(ctx, opts)
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	})
}

func TestASlowConsumerLosesTheWatchInAnOrderlyWay(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world, ctx context.Context) {
		w.put(w.keys[0], "a", "b", "c")
		stream, err := w.api(aggregate.Options{Patience: 10 * time.Second}).Reader("", configMaps).WatchWithContext(ctx, initial())
		require.NoError(t, err)
		time.Sleep(9 * time.Second)
		require.Equal(t, "ADDED r0.loodse/a", describe(<-stream.ResultChan()))
		time.Sleep(11 * time.Second)
		require.Equal(t, []string{"end"}, arrived(stream))
	})
}

func TestBookmarks(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world, ctx context.Context) {
		reader := w.api(aggregate.Options{Bookmark: 45 * time.Second}).Reader("", configMaps)
		stream, err := reader.WatchWithContext(ctx, initial())
		require.NoError(t, err)
		require.Equal(t, []string{"end of initial events of ConfigMap"}, arrived(stream))
		time.Sleep(95 * time.Second) // a server sends a bookmark every minute
		require.Equal(t, []string{"BOOKMARK of ConfigMap"}, arrived(stream))
		w.put(w.keys[0], "a")
		require.Equal(t, []string{"ADDED r0.loodse/a"}, arrived(stream))
		opts := initial()
		opts.AllowWatchBookmarks, opts.TimeoutSeconds = false, new(int64(300))
		silent, err := reader.WatchWithContext(ctx, opts)
		require.NoError(t, err)
		require.Equal(t, []string{"ADDED r0.loodse/a"}, arrived(silent))
		time.Sleep(301 * time.Second)
		require.Equal(t, []string{"end"}, arrived(silent))
	})
}

// A watch that all regions refuse fails. If only one region refuses it, the watch waits for that region.
func TestRefusedWatches(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world, ctx context.Context) {
		w.put(w.keys[0], "a")
		forbid := func(i int) {
			w.servers[w.keys[i]].Inject(regiontest.Fault{Verb: "list", Do: regiontest.Refuse(http.StatusForbidden)})
		}
		api := w.api(aggregate.Options{})
		forbid(0)
		forbid(1)
		stream, err := api.Reader("", configMaps).WatchWithContext(ctx, initial())
		require.NoError(t, err)
		require.Equal(t, []string{"ERROR Forbidden", "end"}, arrived(stream))
		forbid(1)
		stream, err = api.Reader("", configMaps).WatchWithContext(ctx, initial())
		require.NoError(t, err)
		require.Equal(t, []string{"ADDED r0.loodse/a"}, arrived(stream))
		time.Sleep(time.Second)
		require.Equal(t, []string{"end of initial events of ConfigMap"}, arrived(stream))
		stream, err = api.Reader("", unserved).WatchWithContext(ctx, initial())
		require.NoError(t, err)
		require.Equal(t, []string{"ERROR NotFound", "end"}, arrived(stream))
		bad := initial()
		bad.LabelSelector = "this is none"
		stream, err = api.Reader("", configMaps).WatchWithContext(ctx, bad)
		require.NoError(t, err)
		require.Equal(t, []string{"ERROR BadRequest", "end"}, arrived(stream))
	})
}

// After a region moves to another peer, the watch delivers the difference between the objects of the two peers. No
// error and no warning names a peer.
func TestRegionsOfARouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := regiontest.NewRing("secret-peer-1", "secret-peer-2")
		defer ring.Close()
		k, other := region.Key{Provider: "loodse", Name: "eu"}, region.Key{Provider: "loodse", Name: "us"}
		require.NoError(t, ring.Serve("secret-peer-1", k, other))
		for peer, names := range map[region.PeerName][]string{"secret-peer-1": {"a", "b"}, "secret-peer-2": {"b", "c"}} {
			conn, err := ring.Conn(peer)
			require.NoError(t, err)
			for _, name := range names {
				_, err := conn.Dynamic().Resource(configMaps).Namespace("default").Create(t.Context(), configMap(name, "1"), metav1.CreateOptions{})
				require.NoError(t, err)
			}
		}
		routes, err := router.New(ring, router.Options{})
		require.NoError(t, err)
		set, err := aggregate.Regions(routes, router.Self(), nil)
		require.NoError(t, err)
		api, err := aggregate.New(set, aggregate.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			synctest.Wait()
		}()
		stream, err := api.Reader("", configMaps).WatchWithContext(ctx, initial())
		require.NoError(t, err)
		require.Equal(t, []string{"ADDED eu.loodse/a", "ADDED eu.loodse/b", "end of initial events of ConfigMap"}, arrived(stream), "one peer that serves two regions has each object once")
		require.NoError(t, ring.Serve("secret-peer-1"))
		require.NoError(t, ring.Serve("secret-peer-2", k))
		time.Sleep(time.Minute - time.Second)
		events := arrived(stream)
		held := map[string]bool{"ADDED eu.loodse/a": true, "ADDED eu.loodse/b": true}
		for _, e := range events {
			kind, at, _ := strings.Cut(e, " ")
			if kind == "DELETED" {
				delete(held, "ADDED "+at)
			} else if kind == "ADDED" {
				held[e] = true
			}
		}
		require.Equal(t, map[string]bool{"ADDED eu.loodse/b": true, "ADDED eu.loodse/c": true}, held, "%v", events)

		ring.Partition("secret-peer-2", true)
		ctx, report := aggregate.WithReport(ctx)
		_, err = api.Dynamic().Resource(configMaps).List(ctx, metav1.ListOptions{})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret-peer")
		require.NotContains(t, fmt.Sprint(report.Warnings()), "secret-peer")
		_, err = api.Dynamic().Resource(configMaps).Namespace("default").Get(ctx, "b@eu.loodse", metav1.GetOptions{})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret-peer")
	})
}

// If a region refuses the program's own credentials, lists and reads name this cause, and their error is 503, since
// the region did not refuse the caller. A watch retries the region until it accepts the credentials, and the Observer
// gets the cause with each refusal.
func TestARegionThatRefusesTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := regiontest.NewRing("secret-peer-1", "secret-peer-2")
		defer ring.Close()
		eu, us := region.Key{Provider: "loodse", Name: "eu"}, region.Key{Provider: "loodse", Name: "us"}
		require.NoError(t, ring.Serve("secret-peer-1", eu))
		require.NoError(t, ring.Serve("secret-peer-2", us))
		routes, err := router.New(ring, router.Options{})
		require.NoError(t, err)
		set, err := aggregate.Regions(routes, router.Impersonate(router.User{Name: "alice"}), nil)
		require.NoError(t, err)
		refuse := func(times int, peers ...region.PeerName) {
			for _, p := range peers {
				ring.Server(p).Inject(regiontest.Fault{Times: times, Do: regiontest.Refuse(http.StatusUnauthorized)})
			}
		}
		var mu sync.Mutex
		refusals := map[region.Key]int{} // of watches
		all, err := aggregate.New(set, aggregate.Options{Qualify: true, Observer: &aggregate.Observer{Followed: func(_ context.Context, e aggregate.FollowEvent) {
			mu.Lock()
			defer mu.Unlock()
			if e.State == aggregate.CredentialsRefused && errors.Is(e.Err, router.ErrCredentials) {
				refusals[e.Region]++
			} else if e.Err != nil {
				t.Errorf("another cause: %+v", e)
			}
		}}})
		require.NoError(t, err)
		const why = "region us.loodse: CredentialsRefused: it does not accept those of this gateway"

		refuse(3, "secret-peer-2") // one refusal for each call
		_, err = all.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
		require.ErrorContains(t, err, why)
		ctx, report := aggregate.WithReport(t.Context())
		_, err = all.Dynamic().Resource(configMaps).List(partial(ctx), metav1.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, []string{why}, report.Warnings())
		_, err = all.Dynamic().Resource(configMaps).Namespace("default").Get(partial(t.Context()), "a@us.loodse", metav1.GetOptions{})
		require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
		require.EqualError(t, err, why)

		refuse(1, "secret-peer-1", "secret-peer-2")
		_, err = all.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsServiceUnavailable(err), "refused credentials of the program are no error of the caller, even in all regions: %v", err)

		refuse(5, "secret-peer-1", "secret-peer-2")
		watching, cancel := context.WithCancel(t.Context())
		stream, err := all.Reader("", configMaps).WatchWithContext(watching, initial())
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Empty(t, arrived(stream))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"end of initial events of ConfigMap"}, arrived(stream), "the watch retries until the credentials are accepted")
		require.Equal(t, map[region.Key]int{eu: 5, us: 5}, refusals)
		cancel()
		synctest.Wait()
	})
}
