// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

const theirs = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {theirs: 'yes'}}, data: {k: theirs}}"

// quiet returns options with few periodic requests: one type, and a discovery every 100 hours.
func quiet(only schema.GroupVersionResource, opts syncer.Options) syncer.Options {
	opts.Discovery = 100 * time.Hour
	opts.Types = func(gr schema.GroupResource) bool { return gr == only.GroupResource() }
	return opts
}

// asked counts the requests since reset that name an object. It does not count a watch of one object, which has the
// name in the field selector only.
func (s *side) asked() (n int) {
	for _, r := range s.Requests() {
		if r.Name != "" {
			n++
		}
	}
	return n
}

// countNamed returns a counter of the watches of single objects that the next Syncer starts at s.
func (s *side) countNamed() *atomic.Int64 {
	s.t.Helper()
	n := new(atomic.Int64)
	config := s.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if q := r.URL.Query(); q.Has("watch") && strings.HasPrefix(q.Get("fieldSelector"), "metadata.name=") {
				n.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	var err error
	s.api, err = region.APIFor(config)
	require.NoError(s.t, err)
	return n
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// While another client's object has the name that our object needs, the syncer makes at most two requests and about
// one watch an hour in the long run.
func TestAForeignObjectCostsLittle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", regiontest.Options{}), down: newSide(t, "down", regiontest.Options{})}
		watches := p.down.countNamed()
		p.down.create(configMaps, theirs)
		p.up.create(configMaps, a)
		p.start(quiet(configMaps, syncer.Options{}))
		p.reset()
		time.Sleep(3 * time.Hour)
		require.LessOrEqual(t, p.down.asked(), 2*8)
		p.reset()
		watches.Store(0)
		time.Sleep(10 * time.Hour)
		require.LessOrEqual(t, p.down.asked(), 2*10)
		require.LessOrEqual(t, watches.Load(), int64(11))
		require.Equal(t, []string{"configmaps default/a Foreign"}, p.problems())

		// Changes upstream that leave the desired object as it is cause no further requests.
		p.reset()
		for i := range 50 {
			p.up.patch(configMaps, "a", fmt.Sprintf(`{"metadata":{"annotations":{"kubectl.kubernetes.io/n":"%d"}}}`, i))
			p.settle()
		}
		require.LessOrEqual(t, p.down.asked(), 2)
	})
}

// If single objects cannot be watched, the retry alone notices that another client's object was deleted.
func TestAForeignObjectThatCannotBeWatched(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, quiet(configMaps, syncer.Options{}))
		p.down.create(configMaps, theirs)
		// The caches have started their watches before, so the faults do not hit these watches.
		p.down.Inject(regiontest.Fault{Verb: "watch", Resource: configMaps.GroupResource(), Times: 2, Do: regiontest.Refuse(403)})
		p.up.create(configMaps, a)
		p.rest()
		p.down.delete(configMaps, "a")
		time.Sleep(3 * time.Minute)
		require.Equal(t, "v", field(p.down.get(configMaps, "a"), "data", "k"))
		require.Empty(t, p.problems())
	})
}

// Even if the retry delay has grown to an hour, the syncer notices at once that another client's object was deleted.
func TestAForeignObjectThatLeavesIsNoticed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, quiet(configMaps, syncer.Options{}))
		p.down.create(configMaps, theirs)
		p.up.create(configMaps, a)
		time.Sleep(5*time.Hour + 17*time.Second)
		p.down.delete(configMaps, "a")
		p.settle()
		require.Equal(t, "v", field(p.down.get(configMaps, "a"), "data", "k"))
		require.Empty(t, p.problems())

		// A new process begins with the first retry delay.
		p.stop()
		p.down.delete(configMaps, "a")
		p.down.create(configMaps, theirs)
		p.start(quiet(configMaps, syncer.Options{}))
		p.reset()
		time.Sleep(10 * time.Minute)
		require.GreaterOrEqual(t, p.down.asked(), 2*2)
		p.up.delete(configMaps, "a")
		p.rest()
		p.reset()
		p.down.delete(configMaps, "a")
		time.Sleep(3 * time.Hour)
		require.Zero(t, p.down.asked()-1, "an object that was deleted upstream is not retried")
	})
}

// The syncer adopts another client's object once a change makes it equal to ours. While the object keeps changing, the
// syncer tries to adopt it once a minute at most.
func TestAForeignObjectThatChangesIsNoticed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, quiet(configMaps, syncer.Options{Adopt: syncer.AdoptEqual}))
		p.down.create(configMaps, theirs)
		p.up.create(configMaps, a)
		time.Sleep(5 * time.Hour)
		p.reset()
		for i := range 600 {
			p.down.patch(configMaps, "a", fmt.Sprintf(`{"data":{"k":"%d"}}`, i))
			time.Sleep(time.Second)
		}
		require.LessOrEqual(t, p.down.asked()-600, 3*11)
		require.Equal(t, []string{"configmaps default/a Foreign"}, p.problems())
		p.down.patch(configMaps, "a", `{"data":{"k":"v"}}`)
		time.Sleep(time.Minute + time.Second)
		require.Empty(t, p.problems())
		require.NotEmpty(t, p.down.get(configMaps, "a").GetLabels()["syncer.atoll.dev/owner"])
	})
}

// If an object of another client upstream has the name of an object that Upsync would create, the syncer makes at most
// two requests an hour in the long run. Once that object is deleted, the syncer creates its own.
func TestAForeignObjectUpstreamCostsLittle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, quiet(configMaps, syncer.Options{Upsync: syncer.DefaultTypes}))
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {theirs: 'yes'}}}")
		p.down.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {state.workload.kcp.io/my-cluster: Upsync}}, data: {k: v}}")
		time.Sleep(3 * time.Hour)
		p.reset()
		time.Sleep(10 * time.Hour)
		require.LessOrEqual(t, p.up.asked(), 2*10)
		p.up.delete(configMaps, "b")
		p.settle()
		require.Equal(t, "v", field(p.up.get(configMaps, "b"), "data", "k"))
	})
}

// If an object of a refused type is deleted upstream, its deletion waits until a person deletes its downstream object.
// While it waits, the syncer makes at most one request an hour for the downstream object.
func TestARefusedObjectThatWaitsCostsLittle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, quiet(configMaps, syncer.Options{}))
		p.up.create(configMaps, a)
		p.rest()
		p.stop()
		p.start(quiet(configMaps, syncer.Options{Refuse: func(schema.GroupResource, *unstructured.Unstructured) string { return "no" }}))
		p.up.delete(configMaps, "a")
		time.Sleep(3 * time.Hour)
		p.reset()
		time.Sleep(10 * time.Hour)
		require.LessOrEqual(t, p.down.asked(), 10)
		require.NotNil(t, p.up.get(configMaps, "a"))
		p.down.delete(configMaps, "a")
		p.settle()
		require.Nil(t, p.up.get(configMaps, "a"))
	})
}
