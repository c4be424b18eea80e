// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// While a watch begins, resumes or is repaired, its region is restored from a backup and reaches the same version by
// another history. Each case delays a different request of the watch until after the restore. In the end, the consumer
// has exactly the objects of the restored region. Only a watch that resumes may end with 410 instead.
func TestRestoredAtAnyRequest(t *testing.T) {
	for _, mode := range []string{"begins", "resumes", "is repaired"} {
		for _, held := range []regiontest.Fault{
			{Verb: "list"}, {Verb: "watch"}, {Verb: "list", Skip: 1}, {Verb: "list", Skip: 2},
		} {
			t.Run(fmt.Sprintf("%s while %s %d is held up", mode, held.Verb, held.Skip), func(t *testing.T) {
				bubble(t, 1, func(t *testing.T, w *world, ctx context.Context) { restoreAtRequest(ctx, t, w, mode, held) })
			})
		}
	}
}

func restoreAtRequest(ctx context.Context, t *testing.T, w *world, mode string, held regiontest.Fault) {
	t.Helper()
	k := w.keys[0]
	server := w.servers[k]
	w.put(k, "kept")
	saved := server.Save()
	w.put(k, "lost")
	reader := w.api(aggregate.Options{}).Reader("", configMaps)
	opts, has := initial(), map[string]bool{}
	if mode == "resumes" {
		list, err := reader.ListAll(ctx, metav1.ListOptions{LabelSelector: "app=test"})
		require.NoError(t, err)
		opts = metav1.ListOptions{LabelSelector: "app=test", ResourceVersion: list.GetResourceVersion()}
		has = map[string]bool{"kept": true, "lost": true}
	}
	held.Do = regiontest.Delay(3 * time.Second)
	if mode != "is repaired" {
		server.Inject(held)
	}
	stream, err := reader.WatchWithContext(ctx, opts)
	require.NoError(t, err)
	if mode == "is repaired" {
		expired := collect(t, stream, has)
		require.False(t, expired)
		require.Equal(t, map[string]bool{"kept": true, "lost": true}, has)
		server.Inject(held)
		server.Partition(true)
		server.Partition(false)
	}
	time.Sleep(time.Second)
	collect(t, stream, has)
	require.NoError(t, server.Load(saved))
	w.put(k, "other") // gets the version of the lost object
	time.Sleep(time.Minute)
	if collect(t, stream, has) {
		require.Equal(t, "resumes", mode, "a watch with a known ledger repairs the difference")
		return
	}
	require.Equal(t, map[string]bool{"kept": true, "other": true}, has)
}

// collect receives the events that have arrived, updates has, and reports whether the watch ended with 410.
func collect(t *testing.T, w watch.Interface, has map[string]bool) (expired bool) {
	t.Helper()
	for {
		synctest.Wait()
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				return expired
			}
			if e.Type == watch.Error {
				require.True(t, apierrors.IsResourceExpired(apierrors.FromObject(e.Object)), "%v", e.Object)
				expired = true
				continue
			}
			o, ok := e.Object.(*unstructured.Unstructured)
			require.True(t, ok)
			switch e.Type {
			case watch.Added:
				require.False(t, has[o.GetName()], "ADDED twice: %s", o.GetName())
				has[o.GetName()] = true
			case watch.Deleted:
				require.True(t, has[o.GetName()], "DELETED before it was ADDED: %s", o.GetName())
				delete(has, o.GetName())
			}
		default:
			return expired
		}
	}
}

// A repair that fails half-way is retried at its own version. The watch does not return to its position before the
// repair.
func TestARepairIsGoneOnWith(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world, ctx context.Context) {
		k := w.keys[0]
		server, own := w.servers[k], w.clients[k].Resource(configMaps).Namespace("default")
		for i := range 501 { // two pages
			w.put(k, fmt.Sprintf("o%03d", i))
		}
		stream, err := w.api(aggregate.Options{}).Reader("", configMaps).WatchWithContext(ctx, initial())
		require.NoError(t, err)
		require.Len(t, arrived(stream), 502)
		server.Inject( // lists: (1) for the present version; (2) at the last event: expired; (3) and (4) two pages at the present version
			regiontest.Fault{Verb: "list", Skip: 1, Do: regiontest.Gone()},
			regiontest.Fault{Verb: "list", Skip: 2, Do: regiontest.Refuse(http.StatusServiceUnavailable)},
		)
		server.Partition(true)
		server.Partition(false)
		_, err = own.Update(ctx, configMap("o000", "1"), metav1.UpdateOptions{})
		require.NoError(t, err)
		var events []string
		for range 50 {
			time.Sleep(time.Second)
			events = append(events, arrived(stream)...)
		}
		require.Equal(t, []string{"MODIFIED r0.loodse/o000"}, events)
	})
}

// A watch recovers even if its region was restored to a version before the last event and, without writes,
// does not reach that version again.
func TestRestoredAndNotAsFar(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world, ctx context.Context) {
		k := w.keys[0]
		w.put(k, "kept")
		saved := w.servers[k].Save()
		w.put(k, "lost")
		stream, err := w.api(aggregate.Options{}).Reader("", configMaps).WatchWithContext(ctx, initial())
		require.NoError(t, err)
		has := map[string]bool{}
		require.False(t, collect(t, stream, has))
		require.NoError(t, w.servers[k].Load(saved))
		time.Sleep(30 * time.Second)
		require.False(t, collect(t, stream, has))
		require.Equal(t, map[string]bool{"kept": true}, has)
	})
}

// A watch cannot resume from an event in the middle of the initial events: only the stream that sent them can send
// the rest.
func TestResumeInTheMiddleOfARepair(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world, ctx context.Context) {
		w.put(w.keys[0], "a", "b")
		reader := w.api(aggregate.Options{}).Reader("", configMaps)
		stream, err := reader.WatchWithContext(ctx, metav1.ListOptions{LabelSelector: "app=test"})
		require.NoError(t, err)
		o, ok := (<-stream.ResultChan()).Object.(*unstructured.Unstructured)
		require.True(t, ok)
		stream.Stop()
		_, err = reader.WatchWithContext(ctx, metav1.ListOptions{LabelSelector: "app=test", ResourceVersion: o.GetResourceVersion()})
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	})
}

// A region was restored from a backup, and an object was changed to the same number again. The repair delivers the change
// under another resourceVersion: an informer takes an update with the version that it has for a repetition, and does not
// call its handlers.
func TestARepairedObjectHasAnotherResourceVersion(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world, ctx context.Context) {
		k := w.keys[0]
		change := func(value string) {
			_, err := w.clients[k].Resource(configMaps).Namespace("default").Update(ctx, configMap("a", value), metav1.UpdateOptions{})
			require.NoError(t, err)
		}
		w.put(k, "a")
		saved := w.servers[k].Save()
		change("1")
		stream, err := w.api(aggregate.Options{Bookmark: time.Hour}).Reader("", configMaps).WatchWithContext(ctx, initial())
		require.NoError(t, err)
		before := <-stream.ResultChan()
		require.Equal(t, "ADDED r0.loodse/a", describe(before))
		require.Equal(t, []string{"end of initial events of ConfigMap"}, arrived(stream))
		require.NoError(t, w.servers[k].Load(saved))
		change("2")
		after := <-stream.ResultChan()
		require.Equal(t, "MODIFIED r0.loodse/a", describe(after))
		require.NotEqual(t, resourceVersion(t, before), resourceVersion(t, after))
	})
}
