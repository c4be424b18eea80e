// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/apiserver"
	"github.com/atoll-dev/atoll/router/proxy"
)

// regions returns a ring of two regions, and a handler that serves them to callers with the token alice.
func regions(t *testing.T) (*regiontest.Ring, http.Handler) {
	t.Helper()
	ring := regiontest.NewRing("peer-a", "peer-b")
	t.Cleanup(ring.Close)
	for peer, name := range map[region.PeerName]string{"peer-a": "eu", "peer-b": "us"} {
		require.NoError(t, ring.Serve(peer, region.Key{Provider: "loodse", Name: name}))
	}
	routes, err := router.New(ring, router.Options{})
	require.NoError(t, err)
	single, err := proxy.New(routes, func(r *http.Request) (router.Identity, error) {
		if r.Header.Get("Authorization") != "Bearer alice" {
			return router.Identity{}, errors.New("no token")
		}
		return router.Impersonate(router.User{Name: "alice"}), nil
	}, proxy.Options{})
	require.NoError(t, err)
	h, err := apiserver.New(routes, single, apiserver.Options{})
	require.NoError(t, err)
	return ring, h
}

// A cluster.Cluster of a Config has the objects of all regions in its cache, and writes each to its region.
func TestOneCacheOfAllRegions(t *testing.T) {
	ring, h := regions(t)
	config := Config(h)
	config.BearerToken = "alice"
	all, err := cluster.New(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- all.Start(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-done)
	}()
	require.True(t, all.GetCache().WaitForCacheSync(t.Context()))
	require.Empty(t, names(t, all.GetCache()))
	for _, name := range []string{"a@eu.loodse", "b@us.loodse"} {
		require.NoError(t, all.GetClient().Create(t.Context(), configMap(name)))
	}
	eventually(t, want(t, all.GetCache(), "a@eu.loodse", "b@us.loodse"))
	objects, err := ring.Server("peer-b").Objects(corev1.Resource("configmaps"))
	require.NoError(t, err)
	require.Len(t, objects, 1)

	require.NoError(t, all.GetClient().Delete(t.Context(), configMap("a@eu.loodse")))
	eventually(t, want(t, all.GetCache(), "b@us.loodse"))
}

// The handler authenticates the callers of a Config.
func TestConfigWithoutAToken(t *testing.T) {
	_, h := regions(t)
	c, err := client.New(Config(h), client.Options{})
	require.NoError(t, err)
	err = c.List(t.Context(), &corev1.ConfigMapList{})
	require.True(t, apierrors.IsUnauthorized(err), "%v", err)
}

// The transport behaves as a connection does.
func TestTransport(t *testing.T) {
	ended := make(chan error, 1)
	handlers := map[string]http.HandlerFunc{
		"echo": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Method", r.Method)
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusTeapot)
			w.WriteHeader(http.StatusOK) // ignored
			w.Header().Set("X-Late", "ignored")
			_, _ = io.Copy(w, r.Body)
		},
		"nothing": func(http.ResponseWriter, *http.Request) {},
		"abort": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		},
		"panic": func(http.ResponseWriter, *http.Request) { panic("a bug") },
		"stream": func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			ended <- r.Context().Err()
		},
		"full": func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, 1<<20))
			ended <- err
		},
		"silent": func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			ended <- r.Context().Err()
		},
	}
	client, err := rest.HTTPClientFor(Config(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers[strings.TrimPrefix(r.URL.Path, "/")](w, r)
	})))
	require.NoError(t, err)
	send := func(ctx context.Context, path, body string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://all-regions.invalid/"+path, strings.NewReader(body))
		require.NoError(t, err)
		return client.Do(r) //nolint:bodyclose // the callers close it
	}
	read := func(path, body string) (code int, header http.Header, answer string, err error) {
		resp, err := send(t.Context(), path, body)
		require.NoError(t, err)
		defer func() { require.NoError(t, resp.Body.Close()) }()
		data, err := io.ReadAll(resp.Body)
		return resp.StatusCode, resp.Header, string(data), err
	}

	code, header, body, err := read("echo", "hello")
	require.NoError(t, err)
	require.Equal(t, http.StatusTeapot, code)
	require.Equal(t, []string{"hello", "POST", ""}, []string{body, header.Get("X-Method"), header.Get("X-Late")})
	code, _, body, err = read("nothing", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
	require.Empty(t, body)
	_, _, body, err = read("abort", "")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "half", body)
	_, _, _, err = read("panic", "")
	require.ErrorContains(t, err, "the handler panicked: a bug")

	// Closing the body of a response ends its handler, also one that writes.
	for _, path := range []string{"stream", "full"} {
		resp, err := send(t.Context(), path, "")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Error(t, <-ended, path)
	}
	// So does the end of the request's context, before the response and after it.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = send(ctx, "silent", "") //nolint:bodyclose // there is none
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Error(t, <-ended)
	ctx, cancel = context.WithCancel(t.Context())
	resp, err := send(ctx, "stream", "")
	require.NoError(t, err)
	cancel()
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, resp.Body.Close())
	require.Error(t, <-ended)
}
