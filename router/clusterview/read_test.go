// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/atoll-dev/atoll/internal/requestinfo"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// The syncer of one cluster reads the objects that are placed there, and no others, whatever it asks for.
func TestReads(t *testing.T) {
	s := newScene(t, Options{})
	s.put(secrets, "Secret", "mine", at("c1"))
	s.put(secrets, "Secret", "both", map[string]any{v1alpha1.StateLabelPrefix + "c1": "Sync", v1alpha1.StateLabelPrefix + "c2": "Sync"})
	s.put(secrets, "Secret", "other", at("c2"))
	s.put(secrets, "Secret", "upsynced", map[string]any{v1alpha1.StateLabelPrefix + "c1": "Upsync"})
	s.put(secrets, "Secret", "none", nil)
	left := s.put(secrets, "Secret", "left", at("c2"))
	left.SetFinalizers([]string{v1alpha1.FinalizerPrefix + "c1"})
	_, err := s.own().Resource(secrets).Namespace("default").Update(t.Context(), left, metav1.UpdateOptions{})
	require.NoError(t, err)

	mine := s.syncer().Resource(secrets).Namespace("default")
	for _, name := range []string{"mine", "both", "left"} {
		o, err := mine.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err, name)
		require.Equal(t, "Secret", o.GetKind())
	}
	for _, name := range []string{"other", "upsynced", "none", "absent"} {
		_, err := mine.Get(t.Context(), name, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%s: %v", name, err)
	}
	for selector, want := range map[string][]string{
		"":                                    {"both", "left", "mine"},
		v1alpha1.ClusterLabel + "=c1":         {"mine"},
		v1alpha1.ClusterLabel + "!=c1":        {"both", "left"},
		v1alpha1.ClusterLabel + "=c2":         {"left"},
		v1alpha1.ClusterLabel:                 {"left", "mine"},
		"!" + v1alpha1.ClusterLabel:           {"both"},
		v1alpha1.ClusterLabel + " in (c1,c2)": {"left", "mine"},
		v1alpha1.StateLabelPrefix + "c1=Sync": {"both"},
		v1alpha1.StateLabelPrefix + "c2=Sync": {"both"},
	} {
		for _, limit := range []int64{0, 1, 1000} {
			var names []string
			opts := metav1.ListOptions{LabelSelector: selector, Limit: limit}
			for {
				list, err := s.syncer().Resource(secrets).List(t.Context(), opts)
				require.NoError(t, err)
				require.Equal(t, "SecretList", list.GetKind())
				for i := range list.Items {
					names = append(names, list.Items[i].GetName())
				}
				if opts.Continue = list.GetContinue(); opts.Continue == "" {
					break
				}
			}
			require.Equal(t, want, names, "selector %q, limit %d", selector, limit)
		}
	}

	partial, err := metadata.NewForConfig(s.config("c1", "syncer-c1"))
	require.NoError(t, err)
	list, err := partial.Resource(secrets).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 3)
	one, err := partial.Resource(secrets).Namespace("default").Get(t.Context(), "mine", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "c1", one.Labels[v1alpha1.ClusterLabel])
	_, err = partial.Resource(secrets).Namespace("default").Get(t.Context(), "other", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// A watch shows the objects that are placed in the cluster, and reports one that leaves as deleted.
func TestWatch(t *testing.T) {
	s := newScene(t, Options{})
	own := s.own().Resource(configMaps).Namespace("default")
	s.put(configMaps, "ConfigMap", "a", at("c1"))
	stream, err := s.syncer().Resource(configMaps).Watch(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.ClusterLabel + "=c1", ResourceVersion: "0"})
	require.NoError(t, err)
	defer func() {
		stream.Stop()
		for range stream.ResultChan() {
		}
	}()
	next := func(want watch.EventType, name string) {
		t.Helper()
		e := <-stream.ResultChan()
		o, err := meta.Accessor(e.Object)
		require.NoError(t, err)
		require.Equal(t, string(want)+" "+name, string(e.Type)+" "+o.GetName())
	}
	next(watch.Added, "a")
	s.put(configMaps, "ConfigMap", "other", at("c2"))
	s.put(configMaps, "ConfigMap", "b", at("c1"))
	next(watch.Added, "b")
	o, err := own.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	o.SetLabels(map[string]string{v1alpha1.ClusterLabel: "c2"})
	_, err = own.Update(t.Context(), o, metav1.UpdateOptions{})
	require.NoError(t, err)
	next(watch.Deleted, "a")

	for _, selector := range []string{"", v1alpha1.ClusterLabel + "=c2", v1alpha1.ClusterLabel, v1alpha1.ClusterLabel + " in (c1,c2)", v1alpha1.ClusterLabel + "!=c2"} {
		_, err := s.syncer().Resource(configMaps).Watch(t.Context(), metav1.ListOptions{LabelSelector: selector})
		require.True(t, apierrors.IsForbidden(err), "%q: %v", selector, err)
	}
}

// Everything that is not an object of the cluster, the own SyncTarget or a description of the region is refused.
func TestPaths(t *testing.T) {
	s := newScene(t, Options{})
	s.put(secrets, "Secret", "other", at("c2"))
	s.put(configMaps, "ConfigMap", "mine", at("c1"))
	const base = "/synctargets/c1/regions/eu.loodse"
	for path, want := range map[string]int{
		base + "/api": 200, base + "/apis": 200, base + "/api/v1": 200, base + "/openapi/v3": 200, base + "/version": 200, base + "/readyz": 200,
		base + "/apis/apps/v1": 200, base + "/api/v1/namespaces/kube-system": 200,
		base + "/apis/workload.kcp.io/v1alpha1/synctargets/c1":                               200,
		base + "/apis/workload.kcp.io/v1alpha1/synctargets?fieldSelector=metadata.name%3Dc1": 200,
		base + "/api/v1/namespaces/default/configmaps/mine":                                  200,
		base + "/api/v1/secrets": 200, // without the objects of other clusters: see TestReads

		base + "/metrics": 403, base + "/logs": 403, base + "/readyz/etcd": 403, base + "/": 403, base + "/debug/pprof": 403,
		base + "/apis/workload.kcp.io/v1alpha1/synctargets":                                                            403,
		base + "/apis/workload.kcp.io/v1alpha1/synctargets/c2":                                                         403,
		base + "/apis/workload.kcp.io/v1alpha1/synctargets?fieldSelector=metadata.name%3Dc2":                           403,
		base + "/apis/workload.kcp.io/v1alpha1/synctargets?fieldSelector=metadata.name!%3Dc1":                          403,
		base + "/api/v1/namespaces/default":                                                                            404,
		base + "/api/v1/namespaces/default/secrets/other":                                                              404,
		base + "/api/v1/watch/secrets":                                                                                 403,
		base + "/api/v1/watch/secrets?watch=0":                                                                         403,
		base + "/api/v1/namespaces/default/configmaps/mine/proxy":                                                      403,
		base + "/api/v1/namespaces/default/pods/mine/log":                                                              403,
		base + "/api/v1/namespaces/default/pods/mine/exec":                                                             403,
		base + "/api/v1/secrets?watch=1&timeoutSeconds=1":                                                              403,
		base + "/api/v1/secrets?watch=1&timeoutSeconds=1&labelSelector=workloads.kcp.io%2Fcluster%3Dc1&labelSelector=": 400,
		base + "/api/v1/secrets?labelSelector=%21%21":                                                                  400,

		"/synctargets/c2/regions/eu.loodse/api/v1/secrets": 403, // the right to sync c1 only
		"/synctargets/c1/regions/us.loodse/api/v1/secrets": 404,
		"/synctargets/c1/regions/eu/api/v1/secrets":        400,
		"/synctargets//regions/eu.loodse/api/v1/secrets":   400,
		"/synctargets/c_1/regions/eu.loodse/api":           400,
		"/synctargets/c1/eu.loodse/api":                    400,
	} {
		code, body := s.ask(http.MethodGet, path, "", "")
		require.Equal(t, want, code, "%s: %s", path, body)
		require.NotContains(t, body, `"name":"other","namespace"`, path)
		require.NotContains(t, body, "peer-a", path)
	}
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		for _, path := range []string{"/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/configmaps/mine", "/apis/workload.kcp.io/v1alpha1/synctargets/c1"} {
			if method == http.MethodPost && path != "/api/v1/namespaces/default/configmaps" {
				continue
			}
			code, body := s.ask(method, base+path, "application/json", `{"metadata":{"name":"x"}}`)
			require.Equal(t, http.StatusForbidden, code, "%s %s: %s", method, path, body)
		}
	}
}

// The right to sync a SyncTarget is the region's to grant. Nothing else is asked of the region before that.
func TestRights(t *testing.T) {
	s := newScene(t, Options{})
	s.put(configMaps, "ConfigMap", "mine", at("c2"))
	for _, caller := range []string{"syncer-c1", "system", "atoll"} {
		client, err := dynamic.NewForConfig(s.config("c2", caller))
		require.NoError(t, err)
		_, err = client.Resource(configMaps).List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "%s: %v", caller, err)
	}
	client, err := dynamic.NewForConfig(s.config("c2", ""))
	require.NoError(t, err)
	_, err = client.Resource(configMaps).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsUnauthorized(err), "%v", err)
	s.server.Close()
	code, body := s.ask(http.MethodGet, "/synctargets/c1/regions/eu.loodse/api/v1/configmaps", "", "")
	require.Equal(t, http.StatusServiceUnavailable, code, body)
	require.NotContains(t, body, "peer-a")
}

// A watch ends after 10 minutes at the latest, whatever its client asks for.
func TestWatchesEnd(t *testing.T) {
	for asked, want := range map[string]string{"": "600", "&timeoutSeconds=5": "5", "&timeoutSeconds=5000": "600", "&timeoutSeconds=-1": "600", "&timeoutSeconds=x": "600"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/regions/eu.loodse/api/v1/secrets?watch=1"+asked, http.NoBody)
		q := request{Request: r, Info: requestinfo.Info{Verb: "watch"}, query: r.URL.Query()}
		q.limitWatch()
		require.Equal(t, want, r.URL.Query().Get("timeoutSeconds"), asked)
	}
}
