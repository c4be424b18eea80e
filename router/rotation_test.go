// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
)

const timeLimit = 2 * time.Minute // enough on a busy machine

func testConfig() *rest.Config { return &rest.Config{Host: "https://a", Transport: refusing{}} }

// The library's credentials change a hundred times while clients use them, and the old ones are refused at once.
// No request fails, and none is made with another identity.
func TestClientsOutliveRotation(t *testing.T) {
	var accepted atomic.Value
	accepted.Store("Bearer token-0")
	var strangers atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch token := r.Header.Get("Authorization"); {
		case token != accepted.Load() && token != "Bearer of-alice":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`)
			return
		case r.URL.Path == "/api/v1/namespaces/kube-system":
			_, _ = fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"1"}}`)
			return
		case token == accepted.Load() && r.Header.Get("Impersonate-User") != "alice":
			strangers.Add(1)
		}
		_, _ = fmt.Fprint(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	}))
	defer s.Close()
	credentials := func(i int) region.Credentials {
		creds, err := region.FromConfig(&rest.Config{Host: s.URL, BearerToken: fmt.Sprintf("token-%d", i)})
		require.NoError(t, err)
		return creds
	}
	refresh := func() {} // with a Refresh func, refused requests wait for newer credentials
	conn, err := region.NewConn(region.Peer{Name: "a", Regions: []region.Key{eu}, Credentials: credentials(0)}, region.ConnOptions{Refresh: refresh, Await: timeLimit})
	require.NoError(t, err)
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	defer conn.Close()
	r := newRouter(t, region.Fixed(conn), Options{Budget: Budget{QPS: -1}})

	ctx, stop := context.WithCancel(t.Context())
	var calls atomic.Int64
	var wg sync.WaitGroup
	for _, id := range []Identity{alice, alice, Caller("of-alice")} {
		c, err := r.Client(eu, id)
		require.NoError(t, err)
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := c.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{}); err != nil {
					t.Error(err)
				}
				calls.Add(1)
			}
		})
	}
	for i := 1; i <= 100; i++ {
		before := calls.Load()
		accepted.Store(fmt.Sprintf("Bearer token-%d", i))
		require.NoError(t, conn.Rotate(t.Context(), credentials(i)))
		require.Eventually(t, func() bool { return calls.Load() > before+3 }, timeLimit, 100*time.Microsecond)
	}
	stop()
	wg.Wait()
	require.Zero(t, strangers.Load())
	require.EqualValues(t, 101, conn.Health().Generation)
	t.Logf("%d calls over 100 rotations, none failed", calls.Load())
}
