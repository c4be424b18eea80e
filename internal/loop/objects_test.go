// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"errors"
	"fmt"
	"net/http"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// log records the keys of calls.
type log struct {
	mu   sync.Mutex
	keys []string
}

func (l *log) changed(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = append(l.keys, key.Name)
}

func (l *log) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.keys
	l.keys = nil
	slices.Sort(taken)
	return taken
}

func TestObjectsFollow(t *testing.T) {
	t.Run("as maps", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { follow(t, false) }) })
	t.Run("packed", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { follow(t, true) }) })
}

func follow(t *testing.T, packed bool) {
	t.Helper()
	_, d, c := newBoxes(t, regiontest.Options{})
	create(t, c, "b", "a")
	var told log
	o := loop.NewObjects(d, boxes, loop.ObjectsOptions{Changed: told.changed, Strip: loop.KeepManager(), Packed: packed})
	require.ErrorContains(t, o.Err(), "has not been listed yet")
	stop := start(t, o)
	<-o.Synced()
	synctest.Wait()
	require.NoError(t, o.Err())
	require.Equal(t, []string{"a", "b"}, names(o))
	require.Equal(t, []string{"a", "b"}, told.take())

	create(t, c, "c")
	require.NoError(t, c.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	synctest.Wait()
	require.Equal(t, []string{"b", "c"}, names(o))
	require.Equal(t, 2, o.Len())
	require.ElementsMatch(t, []types.NamespacedName{{Namespace: "default", Name: "b"}, {Namespace: "default", Name: "c"}}, o.Keys())
	require.Equal(t, []string{"a", "c"}, told.take())
	obj, ok := o.Get(types.NamespacedName{Namespace: "default", Name: "c"})
	require.True(t, ok)
	require.Empty(t, obj.GetManagedFields(), "stripped")
	_, ok = o.Get(types.NamespacedName{Namespace: "default", Name: "a"})
	require.False(t, ok)

	stop()
	require.ErrorContains(t, o.Err(), "is no longer watched")
	require.Equal(t, []string{"b", "c"}, names(o))
	require.ErrorContains(t, o.Start(t.Context()), "twice")
}

// The serial that Seen returns for an object changes only with its content, also when all objects
// are listed again.
func TestObjectsSeen(t *testing.T) {
	for _, packed := range []bool{false, true} {
		t.Run(fmt.Sprintf("packed=%t", packed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, d, c := newBoxes(t, regiontest.Options{})
				create(t, c, "a", "b")
				o := loop.NewObjects(d, boxes, loop.ObjectsOptions{Packed: packed, Note: (*unstructured.Unstructured).GetName})
				start(t, o)
				<-o.Synced()
				synctest.Wait()
				key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: name} }
				note, a := o.Seen(key("a"))
				require.Equal(t, "a", note)
				_, b := o.Seen(key("b"))
				require.NotEqual(t, a, b)
				note, none := o.Seen(key("c"))
				require.Empty(t, note)
				require.Zero(t, none)

				server.Compact()
				server.Partition(true)
				time.Sleep(time.Minute)
				server.Partition(false)
				_, err := c.Patch(t.Context(), "b", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{})
				require.NoError(t, err)
				time.Sleep(time.Minute)
				_, again := o.Seen(key("a"))
				require.Equal(t, a, again)
				_, again = o.Seen(key("b"))
				require.Greater(t, again, b)
			})
		})
	}
}

// With Indexed, an index is complete whenever the cache is fresh, also after a second list.
func TestObjectsAreFreshWhenTheyAreIndexed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, c := newBoxes(t, regiontest.Options{})
		create(t, c, "a", "b", "c")
		var o *loop.Objects
		var told int
		var early []error
		o = loop.NewObjects(d, boxes, loop.ObjectsOptions{Indexed: true, Changed: func(types.NamespacedName) {
			told++
			early = append(early, o.Err())
		}})
		stop := start(t, o)
		<-o.Synced()
		synctest.Wait()
		require.NoError(t, o.Err())
		require.Equal(t, 3, told)
		for _, err := range early {
			require.ErrorContains(t, err, "has not been listed yet")
		}

		s.Partition(true)
		time.Sleep(time.Minute)
		require.Error(t, o.Err())
		early = nil
		s.Partition(false)
		create(t, c, "d")
		s.Compact()
		time.Sleep(time.Minute)
		require.NoError(t, o.Err())
		require.Equal(t, 4, told)
		require.Len(t, early, 1)
		require.Error(t, early[0])
		stop()
	})
}

func TestObjectsSelect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, d, c := newBoxes(t, regiontest.Options{})
		elsewhere := box("elsewhere", "wanted")
		elsewhere.SetNamespace("kube-public")
		_, err := d.Resource(boxes).Namespace("kube-public").Create(t.Context(), elsewhere, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = c.Create(t.Context(), box("labelled", "wanted"), metav1.CreateOptions{})
		require.NoError(t, err)
		create(t, c, "other")
		for _, test := range []struct {
			opts loop.ObjectsOptions
			want []string
		}{
			{loop.ObjectsOptions{}, []string{"labelled", "other", "elsewhere"}},
			{loop.ObjectsOptions{Namespace: "default"}, []string{"labelled", "other"}},
			{loop.ObjectsOptions{Labels: "wanted=yes"}, []string{"labelled", "elsewhere"}},
			{loop.ObjectsOptions{Fields: "metadata.name=other"}, []string{"other"}},
		} {
			o := loop.NewObjects(d, boxes, test.opts)
			stop := start(t, o)
			<-o.Synced()
			require.Equal(t, test.want, names(o))
			stop()
		}
	})
}

func TestObjectsSurviveAServerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, c := newBoxes(t, regiontest.Options{})
		create(t, c, "a")
		s.Partition(true)
		var flows atomic.Int32
		o := loop.NewObjects(d, boxes, loop.ObjectsOptions{Flows: func() { flows.Add(1) }})
		stop := start(t, o)
		time.Sleep(10 * time.Minute)
		select {
		case <-o.Synced():
			require.Fail(t, "synced with a server that is away")
		default:
		}
		require.ErrorContains(t, o.Err(), "failed to list boxes.example.org")
		require.Zero(t, flows.Load())

		s.Partition(false)
		begun := time.Now()
		<-o.Synced()
		synctest.Wait()
		require.LessOrEqual(t, time.Since(begun), 15*time.Second)
		require.NoError(t, o.Err())
		require.EqualValues(t, 1, flows.Load())

		s.Partition(true)
		time.Sleep(6 * time.Second)
		require.Error(t, o.Err())
		require.EqualValues(t, 2, flows.Load())
		time.Sleep(10 * time.Minute)
		require.Equal(t, []string{"a"}, names(o), "absence is not deletion")
		s.Partition(false)
		require.NoError(t, c.Delete(t.Context(), "a", metav1.DeleteOptions{}))
		create(t, c, "b")
		s.Compact()
		time.Sleep(15 * time.Second)
		require.NoError(t, o.Err())
		require.Equal(t, []string{"b"}, names(o))
		require.EqualValues(t, 3, flows.Load())
		stop()
	})
}

// A server that was restored from a backup reuses resourceVersions for other content. After the
// restore, the cache has the objects of the restored server.
func TestObjectsAreReadAgainAfterARestore(t *testing.T) {
	for _, away := range []time.Duration{0, time.Millisecond} { // the next watch succeeds, or fails
		synctest.Test(t, func(t *testing.T) {
			s, d, c := newBoxes(t, regiontest.Options{})
			create(t, c, "a")
			saved := s.Save()
			create(t, c, numbered(5)...)
			o := loop.NewObjects(d, boxes, loop.ObjectsOptions{})
			stop := start(t, o)
			<-o.Synced()
			synctest.Wait()
			require.Len(t, names(o), 6)

			time.Sleep(time.Minute)
			s.Partition(true)
			time.Sleep(away)
			require.NoError(t, s.Load(saved))
			s.Partition(false)
			create(t, c, "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7")
			time.Sleep(5 * time.Second)
			require.NoError(t, o.Err())
			require.Equal(t, []string{"a", "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"}, names(o))
			stop()
		})
	}
}

// After a restore, Changed is called for an object whose content differs, although its UID and
// resourceVersion are the same. It is not called for an object with the same content.
func TestObjectsTellOfWhatARestoreChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, c := newBoxes(t, regiontest.Options{})
		create(t, c, "same", "other")
		paint := func(color string) *unstructured.Unstructured {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"color":%q}}}`, color)
			painted, err := c.Patch(t.Context(), "other", types.MergePatchType, patch, metav1.PatchOptions{})
			require.NoError(t, err)
			return painted
		}
		saved := s.Save()
		red := paint("red")
		var told log
		o := loop.NewObjects(d, boxes, loop.ObjectsOptions{Changed: told.changed})
		stop := start(t, o)
		<-o.Synced()
		synctest.Wait()
		require.Equal(t, []string{"other", "same"}, told.take())

		s.Partition(true)
		time.Sleep(time.Millisecond)
		require.NoError(t, s.Load(saved))
		s.Partition(false)
		blue := paint("blue")
		require.Equal(t, red.GetResourceVersion(), blue.GetResourceVersion())
		require.Equal(t, red.GetUID(), blue.GetUID())
		time.Sleep(5 * time.Second)
		require.NoError(t, o.Err())
		require.Equal(t, []string{"other"}, told.take())
		stop()
	})
}

func TestObjectsListOnceAsLongAsNothingBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, c := newBoxes(t, regiontest.Options{})
		create(t, c, "a")
		var flows atomic.Int32
		o := loop.NewObjects(d, boxes, loop.ObjectsOptions{Flows: func() { flows.Add(1) }})
		stop := start(t, o)
		<-o.Synced()
		time.Sleep(5 * time.Hour)
		create(t, c, "b")
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, names(o))
		require.Equal(t, 1, count(s, "list"))
		require.GreaterOrEqual(t, count(s, "watch"), 30)
		require.EqualValues(t, 1, flows.Load())
		stop()
	})
}

func TestObjectsOfManyPagesAreStrippedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, c := newBoxes(t, regiontest.Options{})
		create(t, c, numbered(1234)...)
		var stripped atomic.Int32
		o := loop.NewObjects(d, boxes, loop.ObjectsOptions{Strip: func(*unstructured.Unstructured) { stripped.Add(1) }})
		stop := start(t, o)
		<-o.Synced()
		require.Equal(t, numbered(1234), names(o))
		require.EqualValues(t, 1234, stripped.Load())
		require.Equal(t, 3, count(s, "list"))
		stop()
	})
}

func TestObjectsErrIsHonest(t *testing.T) {
	for name, test := range map[string]struct {
		fault    regiontest.Fault
		want     string // in Err, after 6 seconds
		synced   bool
		recovers bool // within two minutes
	}{
		"list refused":   {regiontest.Fault{Verb: "list", Do: regiontest.Refuse(http.StatusForbidden), Times: -1}, "failed to list", false, false},
		"list hangs":     {regiontest.Fault{Verb: "list", Do: regiontest.Hang()}, "has not been listed yet", false, true},
		"list expired":   {regiontest.Fault{Verb: "list", Do: regiontest.Gone()}, "", true, true},
		"watch refused":  {regiontest.Fault{Verb: "watch", Do: regiontest.Refuse(http.StatusForbidden), Times: -1}, "failed to watch", true, false},
		"watch hangs":    {regiontest.Fault{Verb: "watch", Do: regiontest.Hang()}, "no new one has begun", true, true},
		"watch drops":    {regiontest.Fault{Verb: "watch", Do: regiontest.DropRequest()}, "", true, true},
		"watch is gone":  {regiontest.Fault{Verb: "watch", Do: regiontest.Gone()}, "", true, true},
		"watch too many": {regiontest.Fault{Verb: "watch", Do: regiontest.Refuse(http.StatusTooManyRequests, time.Second), Times: 3}, "", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d, c := newBoxes(t, regiontest.Options{})
				create(t, c, "a")
				test.fault.Resource = boxes.GroupResource()
				s.Inject(test.fault)
				o := loop.NewObjects(d, boxes, loop.ObjectsOptions{})
				stop := start(t, o)
				time.Sleep(6 * time.Second)
				if test.want == "" {
					require.NoError(t, o.Err())
				} else {
					require.ErrorContains(t, o.Err(), test.want)
				}
				time.Sleep(2 * time.Minute)
				create(t, c, "b")
				time.Sleep(20 * time.Second)
				if test.recovers {
					require.NoError(t, o.Err())
				} else {
					require.ErrorContains(t, o.Err(), test.want)
				}
				if test.synced || test.recovers {
					require.Equal(t, []string{"a", "b"}, names(o))
				} else {
					require.Empty(t, names(o))
				}
				stop()
			})
		})
	}
}

// A reflector abandons a running list when its context ends. Start waits until that list has ended.
func TestObjectsStopWhileAListHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, _ := newBoxes(t, regiontest.Options{})
		s.Inject(regiontest.Fault{Verb: "list", Do: regiontest.Hang(), Times: -1})
		o := loop.NewObjects(d, boxes, loop.ObjectsOptions{})
		stop := start(t, o)
		time.Sleep(time.Second)
		begun := time.Now()
		stop()
		require.Zero(t, time.Since(begun))
		for _, r := range s.Requests() {
			require.Error(t, r.Err, "still in progress")
		}
	})
}

func TestObjectsOfAFakeClient(t *testing.T) {
	d := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{boxes: "BoxList"})
	create(t, d.Resource(boxes).Namespace("default"), "a")
	o := loop.NewObjects(d, boxes, loop.ObjectsOptions{})
	stop := start(t, o)
	<-o.Synced()
	require.Equal(t, []string{"a"}, names(o))
	stop()
	require.Error(t, errors.Unwrap(o.Err()))
}

// Appeared and Removed are called for changes that a watch reports, not for changes that only a
// list shows.
func TestObjectsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, d, c := newBoxes(t, regiontest.Options{})
		create(t, c, "a", "b")
		var appeared, removed log
		o := loop.NewObjects(d, boxes, loop.ObjectsOptions{
			Appeared: appeared.changed, Removed: func(obj *unstructured.Unstructured) { removed.changed(loop.KeyOf(obj)) },
		})
		start(t, o)
		<-o.Synced()
		synctest.Wait()
		create(t, c, "c")
		require.NoError(t, c.Delete(t.Context(), "a", metav1.DeleteOptions{}))
		synctest.Wait()
		require.Equal(t, []string{"c"}, appeared.take())
		require.Equal(t, []string{"a"}, removed.take())

		backup := server.Save()
		create(t, c, "d")
		synctest.Wait()
		require.Equal(t, []string{"d"}, appeared.take())
		require.NoError(t, server.Load(backup))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"b", "c"}, names(o))
		require.Empty(t, removed.take(), "the list of a server that was restored")
		require.Empty(t, appeared.take())
	})
}

// A reader that asks for an object while Removed runs gets its answer after Removed has returned.
// The answer is that the object does not exist.
func TestRemovedIsToldAsTheObjectGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, d, c := newBoxes(t, regiontest.Options{})
		create(t, c, "a")
		type sight struct{ there, told bool }
		seen := make(chan sight, 1)
		var told atomic.Bool
		var o *loop.Objects
		o = loop.NewObjects(d, boxes, loop.ObjectsOptions{Removed: func(obj *unstructured.Unstructured) {
			go func() {
				_, ok := o.Get(loop.KeyOf(obj))
				seen <- sight{there: ok, told: told.Load()}
			}()
			for range 1000 {
				goruntime.Gosched()
			}
			told.Store(true)
		}})
		start(t, o)
		<-o.Synced()
		require.NoError(t, c.Delete(t.Context(), "a", metav1.DeleteOptions{}))
		require.Equal(t, sight{there: false, told: true}, <-seen)
	})
}
