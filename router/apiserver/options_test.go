// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router/aggregate"
	"github.com/atoll-dev/atoll/router/proxy"
)

func TestArguments(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	_, err := New(nil, s.single, Options{})
	require.EqualError(t, err, "apiserver: the router is nil; make one with router.New")
	_, err = New(s.routes, nil, Options{})
	require.EqualError(t, err, "apiserver: the proxy is nil; make one with proxy.New")
}

// A list continues at another replica with the same keys, and nowhere else.
func TestReplicas(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	s.put(t, "eu.loodse", "a")
	s.put(t, "us.loodse", "b")
	keys, err := aggregate.NewKeyring([]byte("shared by replicas"))
	require.NoError(t, err)
	s.server = s.replica(t, Options{Keys: keys})
	page, err := s.all(t, configMaps).List(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	s.server = s.replica(t, Options{Keys: keys})
	rest, err := s.all(t, configMaps).List(t.Context(), metav1.ListOptions{Limit: 1, Continue: page.GetContinue()})
	require.NoError(t, err)
	require.Equal(t, "b@us.loodse", rest.Items[0].GetName())
	s.server = s.replica(t, Options{})
	code, _, body := s.ask(t, http.MethodGet, "/regions/*/api/v1/configmaps?limit=1&continue="+page.GetContinue(), "alice")
	require.Equal(t, http.StatusBadRequest, code, body)
}

// With Options.Sharing, the watches of one caller share one watch of each region. Another caller has one of his own.
func TestSharing(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	s.put(t, "eu.loodse", "a")
	sharing, err := aggregate.NewSharing(aggregate.SharingOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- sharing.Start(ctx) }()
	<-sharing.Started()
	s.server = s.replica(t, Options{Sharing: sharing})
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()
	for _, tc := range []struct {
		token   string
		watches int
	}{{"alice", 1}, {"alice", 1}, {"bob", 2}, {"alice", 2}} {
		client, err := dynamic.NewForConfig(&rest.Config{Host: s.server.URL + "/regions/*", BearerToken: tc.token})
		require.NoError(t, err)
		w, err := client.Resource(configMaps).Watch(ctx, metav1.ListOptions{
			SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
		})
		require.NoError(t, err)
		defer func() {
			w.Stop()
			for range w.ResultChan() {
			}
		}()
		require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
		require.Equal(t, watch.Bookmark, (<-w.ResultChan()).Type)
		watches := 0
		for _, r := range s.ring.Server("peer-a").Requests() {
			if r.Verb == "watch" && r.Resource == "configmaps" {
				watches++
			}
		}
		require.Equal(t, tc.watches, watches, tc.token)
	}
}

// The Observer of the options receives the outcomes of lists and the steps of watches.
func TestObserver(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	s.put(t, "eu.loodse", "a")
	s.put(t, "us.loodse", "b")
	listed, followed := make(chan []aggregate.Outcome, 1), make(chan aggregate.FollowEvent, 100)
	s.server = s.replica(t, Options{Observer: &aggregate.Observer{
		Listed:   func(_ context.Context, outcomes []aggregate.Outcome) { listed <- outcomes },
		Followed: func(_ context.Context, e aggregate.FollowEvent) { followed <- e },
	}})
	list, err := s.all(t, configMaps).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, outcome := range <-listed {
		require.Equal(t, aggregate.OK, outcome.State, outcome.Region)
	}
	w, err := s.all(t, configMaps).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(t, err)
	require.Equal(t, aggregate.OK, (<-followed).State)
	w.Stop()
	for range w.ResultChan() {
	}
}

// The mapping of types and the budget are those of the options.
func TestOptions(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	s.put(t, "eu.loodse", "a")
	s.server = s.replica(t, Options{Map: func(common schema.GroupVersionResource, k region.Key) (schema.GroupVersionResource, bool) {
		common.Group = ""
		return common, k.Name == "eu"
	}})
	code, _, body := s.ask(t, http.MethodGet, "/regions/*/apis/common.example.com/v1/configmaps", "alice")
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, "common.example.com/v1")
	require.Contains(t, body, "a@eu.loodse")
	require.NotContains(t, body, "us.loodse")

	large := configMap("large", "")
	large.Object["data"] = map[string]any{"value": strings.Repeat("x", 1<<20-100)}
	_, err := s.client(t, "eu.loodse").Resource(configMaps).Namespace("default").Create(t.Context(), large, metav1.CreateOptions{})
	require.NoError(t, err)
	budget, err := aggregate.NewBudget(4 << 20)
	require.NoError(t, err)
	s.server = s.replica(t, Options{Budget: budget})
	code, _, body = s.ask(t, http.MethodGet, "/regions/*/api/v1/configmaps", "alice")
	require.Equal(t, http.StatusServiceUnavailable, code, body)
	require.Contains(t, body, "Busy: the answers that are read now take 4194304 bytes")
}
