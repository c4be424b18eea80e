// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// unreached returns a server that one arbiter cannot reach, but other arbiters can.
func unreached(t *testing.T) *regiontest.Server {
	t.Helper()
	s := regiontest.NewServer(regiontest.Options{})
	t.Cleanup(s.Close)
	s.Partition(true)
	return s
}

// TestArbitersThatReachDifferentServersDoNotFight checks that arbiters which reach different
// servers do not overwrite each other's reports without end.
func TestArbitersThatReachDifferentServersDoNotFight(t *testing.T) {
	t.Run("one has no plane", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.plane.Inject(regiontest.Fault{Verb: "create", Times: -1, Do: regiontest.Refuse(503)})
			api, err := region.APIFor(unreached(t).Config())
			require.NoError(t, err)
			w.start(w.api, Options{})
			w.start(api, Options{})
			passes(20 * time.Second)
			w.claim("us")
			before := writes(w.ring.Server("us"))
			passes(time.Hour)
			require.Equal(t, "Pending", w.statusOf("us"))
			require.LessOrEqual(t, writes(w.ring.Server("us"))-before, 2)
			w.plane.Reset()
			passes(2 * time.Minute)
			require.Equal(t, "Bound us", w.statusOf("us"))
			before = writes(w.ring.Server("us"))
			passes(time.Hour)
			require.Equal(t, before, writes(w.ring.Server("us")))
		})
	})
	t.Run("one does not reach the holder", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.start(w.api, Options{})
			w.startIn(w.api, w.without(t, "us"), Options{})
			w.bindTo("us", "eu")
			before := writes(w.ring.Server("us")) + writes(w.ring.Server("eu"))
			passes(time.Hour)
			require.Equal(t, before, writes(w.ring.Server("us"))+writes(w.ring.Server("eu")))
			require.Equal(t, "Bound us", w.statusOf("us"))
			require.Equal(t, "Conflict us", w.statusOf("eu"))
		})
	})
	t.Run("no plane, and one does not reach the holder", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			c := w.coordinator()
			w.startIn(nil, w.without(t, "us"), Options{})
			_, err := c.Add(t.Context(), w.object("RegionClaim", name), fanout.AddOptions{Target: "us"})
			require.NoError(t, err)
			passes(time.Minute)
			require.Equal(t, "Pending", w.statusOf("eu"))
			w.start(nil, Options{})
			passes(time.Minute)
			require.Equal(t, "Conflict us", w.statusOf("eu"))
			before := writes(w.ring.Server("us")) + writes(w.ring.Server("eu"))
			passes(time.Hour)
			require.Equal(t, before, writes(w.ring.Server("us"))+writes(w.ring.Server("eu")))
		})
	})
	t.Run("no plane, and one does not reach who was applied", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, "ap", "eu", "us")
			slowly(w, "eu")
			w.start(nil, Options{})
			w.startIn(nil, w.without(t, "ap"), Options{})
			passes(time.Minute) // then Patience has passed
			w.reserved("eu", "us")
			passes(time.Minute)
			before := writes(w.ring.Server("eu"))
			w.claim("ap")
			passes(time.Minute)
			require.LessOrEqual(t, writes(w.ring.Server("eu"))-before, 2, "a write may be repeated until the cache shows it")
			passes(time.Hour)
			require.LessOrEqual(t, writes(w.ring.Server("eu"))-before, 2)
			require.Contains(t, w.status("eu").Conditions[0].Message, "no coordinator has adopted the claim", "from the arbiter that sees all peers")
			require.Equal(t, "Pending", w.statusOf("ap"))
		})
	})
	t.Run("no plane, and one does not reach the holder of what is deleted", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			c := w.coordinator()
			slowly(w, "eu")
			w.start(nil, Options{})
			w.startIn(nil, w.without(t, "us"), Options{})
			_, err := c.Add(t.Context(), w.object("RegionClaim", name), fanout.AddOptions{Target: "us"})
			require.NoError(t, err)
			passes(time.Minute)
			w.lingersQuietly("eu")
			require.Equal(t, "Pending us", w.statusOf("eu"))
		})
	})
	t.Run("one has no plane when a claim is deleted", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			api, err := region.APIFor(unreached(t).Config())
			require.NoError(t, err)
			slowly(w, "eu")
			w.start(w.api, Options{})
			w.start(api, Options{})
			w.bindTo("us", "eu")
			passes(20 * time.Second)
			w.lingersQuietly("eu")
			require.Equal(t, "Pending us", w.statusOf("eu"))
		})
	})
}

// slowly delays each write to a peer, so that endless writes do not stop the fake clock.
func slowly(w *world, p region.PeerName) {
	w.ring.Server(p).Inject(regiontest.Fault{Verb: "patch", Times: -1, Do: regiontest.Delay(100 * time.Millisecond)})
}

// reserved creates a Reserved claim in p, of an operation with the given target.
func (w *world) reserved(p, target region.PeerName) {
	w.t.Helper()
	obj := w.object("RegionClaim", name)
	require.NoError(w.t, unstructured.SetNestedMap(obj.Object, fanoutOf(p, "Secondary", "Reserved"), "spec", "fanout"))
	require.NoError(w.t, unstructured.SetNestedField(obj.Object, string(target), "spec", "fanout", "claim", "target"))
	_, err := w.conn(p).Dynamic().Resource(claims).Namespace(provider).Create(w.t.Context(), obj, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// lingers adds a finalizer to the claim in p and deletes the claim, which therefore stays.
func (w *world) lingers(p region.PeerName) {
	w.t.Helper()
	obj := w.stored(p, claims)
	obj.SetFinalizers(append(obj.GetFinalizers(), "example.com/slow"))
	_, err := w.conn(p).Dynamic().Resource(claims).Namespace(provider).Update(w.t.Context(), obj, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	w.unclaim(p)
}

// lingersQuietly does the same as lingers. It also checks that each of two arbiters reports the
// deletion at most once. A write that is repeated before the cache shows the first one is rejected.
func (w *world) lingersQuietly(p region.PeerName) {
	w.t.Helper()
	server := w.ring.Server(p)
	before := landed(server)
	w.lingers(p)
	passes(time.Minute)
	require.LessOrEqual(w.t, landed(server)-before, 4, "two are the test's")
	all := writes(server)
	passes(time.Hour)
	require.Equal(w.t, all, writes(server))
}

// without returns the world's ring for an arbiter that cannot reach p.
func (w *world) without(t *testing.T, p region.PeerName) region.Directory {
	t.Helper()
	var conns []*region.Conn
	for q := range w.ring.Snapshot().Peers() {
		conn := w.conn(q.Name)
		if q.Name == p {
			credentials, err := region.FromConfig(unreached(t).Config())
			require.NoError(t, err)
			conn, err = region.NewConn(region.Peer{Name: p, Credentials: credentials}, region.ConnOptions{})
			require.NoError(t, err)
		}
		conns = append(conns, conn)
	}
	return region.Fixed(conns...)
}
