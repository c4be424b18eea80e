// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
)

var couchdbs = schema.GroupVersionResource{Group: "eu-west-1.loodse", Version: "v1", Resource: "couchdbs"}

func newRouter(t *testing.T, d region.Directory, opts Options) *Router {
	t.Helper()
	r, err := New(d, opts)
	require.NoError(t, err)
	return r
}

func newClient(t *testing.T, r *Router) dynamic.ResourceInterface {
	t.Helper()
	c, err := r.Client(eu, Self())
	require.NoError(t, err)
	return c.Dynamic().Resource(couchdbs).Namespace("acme")
}

// Until the ring has read its source, no region is reported as unknown.
func TestNoRegionIsUnknownBeforeTheFirstSnapshot(t *testing.T) {
	source, err := region.FromPeers()
	require.NoError(t, err)
	ring, err := region.NewRing(source, region.Options{})
	require.NoError(t, err)
	says := ResolverFunc(func(context.Context, region.Key) (region.PeerName, error) { return "", region.ErrUnknownRegion })
	for _, opts := range []Options{{}, {Resolver: says}} {
		_, err = newRouter(t, ring, opts).Lookup(t.Context(), eu)
		require.ErrorIs(t, err, region.ErrUnavailable)
		require.NotErrorIs(t, err, region.ErrUnknownRegion)
	}
}

func TestLookup(t *testing.T) {
	d := newDirectory(t, newServer(t, "a"))
	r := newRouter(t, d, Options{})
	_, err := r.Lookup(t.Context(), eu)
	require.ErrorIs(t, err, region.ErrUnknownRegion)
	require.EqualError(t, err, "region eu-west-1.loodse: lookup: unknown region (none is known; does the ring's source list regions?)")

	regions := map[region.Key]region.PeerName{eu: "a"}
	for i := range shown + 2 {
		regions[region.Key{Provider: "loodse", Name: fmt.Sprintf("r%02d", i)}] = "a"
	}
	d.serve(t, regions)
	route, err := r.Lookup(t.Context(), eu)
	require.NoError(t, err)
	require.Equal(t, Route{Region: eu, Peer: "a"}, route)
	_, err = r.Lookup(t.Context(), region.Key{Provider: "other", Name: "eu-west-1"})
	require.ErrorContains(t, err, "region eu-west-1.other: lookup: unknown region (13 known: eu-west-1.loodse, r00.loodse, ")
	require.ErrorContains(t, err, "r08.loodse, and 3 more; to add it, list it under the regions of the peer that serves it)")
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = r.Lookup(t.Context(), eu) }))
	_, err = New(nil, Options{})
	require.Error(t, err)
}

func TestIdentityFailsClosed(t *testing.T) {
	r := newRouter(t, newDirectory(t), Options{})
	for name, id := range map[string]Identity{
		"zero":            {},
		"no token":        Caller(""),
		"two tokens":      Caller("a b"),
		"header in token": Caller("a\r\nImpersonate-User: root"),
		"no name":         Impersonate(User{UID: "1", Groups: []string{"dev"}}),
		"masters":         Impersonate(User{Name: "alice", Groups: []string{"dev", "system:masters"}}),
		"empty group":     Impersonate(User{Name: "alice", Groups: []string{""}}),
		"header in name":  Impersonate(User{Name: "alice\r\nImpersonate-Group: system:masters"}),
		"header in extra": Impersonate(User{Name: "alice", Extra: map[string][]string{"a": {"b\n"}}}),
		"spaced group":    Impersonate(User{Name: "alice", Groups: []string{" system:masters"}}),
		"spaced name":     Impersonate(User{Name: "alice "}),
		"empty extra key": Impersonate(User{Name: "alice", Extra: map[string][]string{"": {"b"}}}),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.Client(eu, id)
			require.ErrorContains(t, err, "router: client of region eu-west-1.loodse: identity: ")
		})
	}
	_, err := r.Client(region.Key{Name: "eu"}, Self())
	require.ErrorContains(t, err, "provider")
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", Caller("secret"), Caller("secret"), Caller("secret")), "secret")

	allowing := newRouter(t, newDirectory(t), Options{Groups: func(group string) bool { return group == "system:authenticated" }})
	_, err = allowing.Client(eu, Impersonate(User{Name: "alice", Groups: []string{"system:authenticated"}}))
	require.NoError(t, err)
	_, err = allowing.Client(eu, Impersonate(User{Name: "alice", Groups: []string{"dev"}}))
	require.Error(t, err)
}

func TestRequestsAreMadeAsTheIdentity(t *testing.T) {
	s := newServer(t, "a")
	d := newDirectory(t, s)
	d.serve(t, map[region.Key]region.PeerName{eu: "a"})
	alice := Impersonate(User{Name: "alice", UID: "1", Groups: []string{"dev", "ops"}, Extra: map[string][]string{"a/b": {"c"}}})
	for _, tt := range []struct {
		id   Identity
		want http.Header
	}{
		{Self(), http.Header{"Authorization": {"Bearer library"}}},
		{Caller("alice-token"), http.Header{"Authorization": {"Bearer alice-token"}}},
		{alice, http.Header{
			"Authorization": {"Bearer library"}, "Impersonate-User": {"alice"}, "Impersonate-Uid": {"1"},
			"Impersonate-Group": {"dev", "ops"}, "Impersonate-Extra-A%2fb": {"c"},
		}},
	} {
		t.Run(tt.id.String(), func(t *testing.T) {
			c, err := newRouter(t, d, Options{}).Client(eu, tt.id)
			require.NoError(t, err)
			// Identity headers of the request, in any spelling, are not sent.
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Config().Host+"/apis/eu-west-1.loodse/v1/couchdbs", http.NoBody)
			require.NoError(t, err)
			for _, name := range []string{"Authorization", "Impersonate-User", "impersonate-group", "Impersonate-Extra-Scopes", "X-Remote-User", "IMPERSONATE-NEW"} {
				req.Header[name] = []string{"mallory"}
			}
			req.Header.Set("Connection", "Impersonate-User")
			resp, err := c.Config().Transport.RoundTrip(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			got := s.last(t).Header.Clone()
			got.Del("User-Agent")
			got.Del("Accept-Encoding")
			require.Equal(t, tt.want, got)

			stream, err := c.StreamConfig()
			require.NoError(t, err)
			require.Equal(t, tt.want.Get("Authorization"), "Bearer "+stream.BearerToken)
			require.Equal(t, tt.want.Get("Impersonate-User"), stream.Impersonate.UserName)
		})
	}
}

func TestClientFollowsItsRegion(t *testing.T) {
	a, b := newServer(t, "a"), newServer(t, "b")
	d := newDirectory(t, a, b)
	var routed []RouteEvent
	r := newRouter(t, d, Options{Observer: &Observer{Routed: func(_ context.Context, e RouteEvent) { routed = append(routed, e) }}})
	client := newClient(t, r)
	_, err := client.List(t.Context(), metav1.ListOptions{})
	require.ErrorIs(t, err, region.ErrUnknownRegion)

	d.serve(t, map[region.Key]region.PeerName{eu: "a"})
	list, err := client.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	watch, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(t, err)
	require.Equal(t, "ADDED", string((<-watch.ResultChan()).Type))

	d.serve(t, map[region.Key]region.PeerName{eu: "b"})
	_, open := <-watch.ResultChan()
	require.False(t, open, "the watch goes on, or ended with an error event")
	for _, stale := range []metav1.ListOptions{{ResourceVersion: "7"}, {Continue: "token"}} {
		_, err = client.List(t.Context(), stale)
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)
		_, err = client.Watch(t.Context(), stale)
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	}
	require.Zero(t, b.count(), "a version of the old peer reached the new one")
	_, err = client.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	require.NoError(t, err)
	watch, err = client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "5"})
	require.NoError(t, err)
	watch.Stop()
	require.Equal(t, 2, b.count())
	require.Equal(t, region.PeerName("b"), routed[len(routed)-1].Peer)
	require.ErrorIs(t, routed[0].Err, region.ErrUnknownRegion)
}

// A move has ended a watch, and another caller lists at the new peer. The list does not make the watch's old
// resourceVersion valid there.
func TestListBesideAnEndedWatch(t *testing.T) {
	a, b := newServer(t, "a"), newServer(t, "b")
	d := newDirectory(t, a, b)
	d.serve(t, map[region.Key]region.PeerName{eu: "a"})
	client := newClient(t, newRouter(t, d, Options{}))
	list, err := client.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	stale := metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}
	watch, err := client.Watch(t.Context(), stale)
	require.NoError(t, err)
	<-watch.ResultChan()

	d.serve(t, map[region.Key]region.PeerName{eu: "b"})
	_, open := <-watch.ResultChan()
	require.False(t, open)
	_, err = client.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = client.Watch(t.Context(), stale)
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	watch, err = client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "5"})
	require.NoError(t, err, "a list anew is good")
	watch.Stop()
	_, err = client.Get(t.Context(), "a", metav1.GetOptions{ResourceVersion: "5"})
	require.NoError(t, err, "one object at a version of the new peer")
}

func TestUnreachablePeer(t *testing.T) {
	creds, err := region.FromConfig(&rest.Config{Host: "https://a", Transport: refusing{}})
	require.NoError(t, err)
	conn, err := region.NewConn(region.Peer{Name: "a", Regions: []region.Key{eu}, Credentials: creds}, region.ConnOptions{})
	require.NoError(t, err)
	_, err = newClient(t, newRouter(t, region.Fixed(conn), Options{})).List(t.Context(), metav1.ListOptions{})
	require.ErrorIs(t, err, region.ErrUnavailable)
	failed, ok := errors.AsType[*region.Error](err)
	require.True(t, ok)
	require.Equal(t, "peer a: region eu-west-1.loodse: GET: peer is unavailable: no route to host", failed.Error())
}

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no route to host")
}

func TestIsCollection(t *testing.T) {
	for path, want := range map[string]bool{
		"/api/v1/nodes": true, "/api/v1/nodes/n": false, "/api/v1/namespaces": true, "/api/v1/namespaces/n": false,
		"/api/v1/namespaces/n/pods": true, "/api/v1/namespaces/n/pods/p": false, "/apis/g/v1/x": true, "/apis/g/v1": false,
		"/apis/g/v1/namespaces/n/x": true, "/apis/g/v1/x/y/status": false, "/readyz": false, "/api": false,
	} {
		require.Equal(t, want, isCollection(path), path)
	}
}
