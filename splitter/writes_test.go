// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
)

// line is the connection of a Splitter to its API server. It can delay watch events.
type line struct {
	to   http.RoundTripper
	mu   sync.Mutex
	free chan struct{} // closed while no events are delayed
}

func newLine() *line {
	l := &line{free: make(chan struct{})}
	close(l.free)
	return l
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.to.RoundTrip(r)
	if err == nil && r.URL.Query().Has("watch") {
		response.Body = &heard{response.Body, l}
	}
	return response, err
}

// hold delays all watch events until the test calls release.
func (l *line) hold() (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := make(chan struct{})
	l.free = free
	return sync.OnceFunc(func() { close(free) })
}

// heard is the body of a watch response whose reads can be delayed.
type heard struct {
	io.ReadCloser
	line *line
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	h.line.mu.Lock()
	free := h.line.free
	h.line.mu.Unlock()
	<-free
	return n, err
}

// The Splitter has removed a replica from one cluster, which uses up maxUnavailable. A second
// division before the cache shows that write must not remove a replica from another cluster.
func TestNothingIsTakenTwice(t *testing.T) {
	for name, test := range map[string]struct {
		a     int64 // how many replicas cluster a has
		fault []regiontest.Fault
	}{
		"one of several":                    {a: 4},
		"the last":                          {a: 1},
		"the answer was lost":               {a: 4, fault: []regiontest.Fault{{Verb: "patch", Name: "web--a", Do: regiontest.DropReply()}}},
		"the last, and the answer was lost": {a: 1, fault: []regiontest.Fault{{Verb: "delete", Name: "web--a", Do: regiontest.DropReply()}}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var shares atomic.Pointer[[]splitter.Share]
				s := regiontest.NewServer(regiontest.Options{History: 100000})
				t.Cleanup(s.Close)
				l, config := newLine(), s.Config()
				config.Wrap(func(to http.RoundTripper) http.RoundTripper { l.to = to; return l })
				api, err := region.APIFor(config)
				require.NoError(t, err)
				share := func(a, b int64) {
					shares.Store(&[]splitter.Share{{Name: "a", Min: a, Max: &a}, {Name: "b", Min: b, Max: &b}, {Name: "c"}})
				}
				share(test.a, 4)
				w := newWorldOn(t, s, api, splitter.Options{Place: func(*unstructured.Unstructured, []splitter.Cluster) (splitter.Demand, []splitter.Share, error) {
					return splitter.Demand{}, *shares.Load(), nil
				}})
				says := func(a, b int64) {
					share(a, b)
					w.split.Again()
					w.rest()
				}
				w.create(deployments, deployment("web", 12, "  strategy: {rollingUpdate: {maxUnavailable: 1, maxSurge: 12}}"))
				w.rest()
				works := func(c string) { w.works("web--"+c, w.shards()[c]) }
				for c := range w.shards() {
					works(c)
				}
				w.rest()

				release := l.hold()
				t.Cleanup(release)
				w.Inject(test.fault...)
				says(0, 4)
				taken := map[string]int64{"a": test.a - 1, "b": 4, "c": 8}
				if test.a == 1 {
					delete(taken, "a")
				}
				require.Equal(t, taken, w.shards())
				if test.a > 1 {
					works("a")
				}
				w.works("web--c", 4) // it has observed the new number, and its new replicas are not available
				says(test.a, 0)
				require.Equal(t, taken, w.shards(), "the cache does not show the available replicas")

				release()
				w.rest()
				back := map[string]int64{"a": test.a, "b": 4, "c": 12 - test.a}
				require.Equal(t, back, w.shards(), "at most one may be unavailable")
				works("a")
				works("c")
				w.rest()
				delete(back, "b")
				require.Equal(t, back, w.shards())
			})
		})
	}
}

// The request that creates, updates or deletes a shard is lost on its way to the API server. The
// Splitter repeats it.
func TestWhatIsLostIsWrittenAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		lose := func(verb string) {
			w.Inject(regiontest.Fault{Verb: verb, Name: "web--a", Times: 2, Do: regiontest.DropRequest()})
		}
		lose("patch")
		w.create(deployments, deployment("web", 4, "  strategy: {rollingUpdate: {maxSurge: 100%}}"))
		w.rest()
		require.Equal(t, map[string]int64{"a": 2, "b": 2}, w.shards())
		lose("patch")
		w.patch(deployments, "web", `{"spec":{"replicas":8}}`)
		w.rest()
		require.Equal(t, map[string]int64{"a": 4, "b": 4}, w.shards())
		lose("delete")
		w.clusters.Set(cluster("b", ""))
		w.rest()
		w.works("web--b", 8)
		w.rest()
		require.Equal(t, map[string]int64{"b": 8}, w.shards())
	})
}
