// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
)

// door is a RoundTripper to an in-memory server. It passes on only requests with its present token, and answers all
// others with 401.
type door struct {
	inner http.RoundTripper
	token atomic.Value
}

func (d *door) RoundTrip(req *http.Request) (*http.Response, error) {
	if token, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); token != d.token.Load() {
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`
		return &http.Response{
			StatusCode: http.StatusUnauthorized, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)), Request: req,
		}, nil
	}
	return d.inner.RoundTrip(req)
}

// renewed is a Source of one peer whose credentials change whenever the test sends a Peer on next.
type renewed struct{ next chan region.Peer }

func (s *renewed) Run(ctx context.Context, publish func(*region.Snapshot)) error {
	for {
		select {
		case p := <-s.next:
			snapshot, err := region.NewSnapshot(p)
			if err != nil {
				return err
			}
			publish(snapshot)
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *renewed) Refresh() {}

// A Router over a Ring needs only the rights that rights.Impersonate returns, and uses each of them. The test replaces
// the Router's credentials a hundred times. Each time, the peer refuses the old credentials before the Ring has the
// new ones. No request fails.
func TestRotationWithThePrintedRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := region.Key{Provider: "loodse", Name: "eu-west-1"}
		alice := router.User{Name: "alice", UID: "7", Groups: []string{"dev"}, Extra: map[string][]string{"scopes": {"view"}}}
		role, _, err := rights.Impersonate(rights.Impersonation{Users: []string{alice.Name}, UIDs: []string{alice.UID}, Groups: alice.Groups, Extra: alice.Extra})
		require.NoError(t, err)
		grants := rightstest.New(role.Rules...)
		tokens := map[string]regiontest.User{}
		for i := range 101 {
			tokens[fmt.Sprint("gateway-", i)] = regiontest.User{Name: rightstest.Program}
		}
		server := regiontest.NewServer(regiontest.Options{Tokens: tokens, Authorize: func(r regiontest.Request) error {
			if r.User.Name == alice.Name {
				return nil
			}
			return grants.Authorize(r)
		}})
		defer server.Close()
		config := server.Config()
		d := &door{inner: config.Transport}
		config.Transport = d
		peer := func(i int) region.Peer {
			config.BearerToken = fmt.Sprint("gateway-", i)
			creds, err := region.FromConfig(config)
			require.NoError(t, err)
			return region.Peer{Name: "a", Regions: []region.Key{k}, Credentials: creds}
		}
		source := &renewed{next: make(chan region.Peer)}
		ring, err := region.NewRing(source, region.Options{})
		require.NoError(t, err)
		routes, err := router.New(ring, router.Options{Budget: router.Budget{QPS: -1}})
		require.NoError(t, err)
		client, err := routes.Client(k, router.Impersonate(alice))
		require.NoError(t, err)

		ctx, cancel := context.WithCancel(t.Context())
		var group errgroup.Group
		stop := sync.OnceValue(func() error {
			cancel()
			return group.Wait()
		})
		defer func() { require.NoError(t, stop()) }()
		group.Go(func() error { return ring.Start(ctx) })
		d.token.Store("gateway-0")
		source.next <- peer(0)
		synctest.Wait()
		conn, err := ring.Conn("a")
		require.NoError(t, err)
		var calls atomic.Int64
		for range 3 {
			group.Go(func() error {
				for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
					calls.Add(1)
					if _, err := client.Dynamic().Resource(configMaps).Namespace("default").List(context.WithoutCancel(ctx), metav1.ListOptions{}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		for i := 1; i <= 100; i++ {
			d.token.Store(fmt.Sprint("gateway-", i))
			time.Sleep(10 * time.Millisecond) // meanwhile the server refuses requests
			source.next <- peer(i)
			time.Sleep(10 * time.Millisecond) // requests succeed again
			require.EqualValues(t, i+1, conn.Health().Generation, "%v", conn.Health().Rotation)
		}
		require.NoError(t, stop(), "a request failed")
		require.Greater(t, calls.Load(), int64(1000))
		require.NoError(t, conn.Health().Identity)
		require.Empty(t, grants.Denied(server.Requests()))
		require.Empty(t, grants.Unused())
		t.Logf("%d calls over 100 rotations, none failed", calls.Load())
	})
}

// A Router without the right to read the cluster's identity keeps its old credentials. The peer counts as healthy, and
// Explain names the missing right.
func TestExplainNamesTheMissingRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := region.Key{Provider: "loodse", Name: "eu-west-1"}
		grants := rightstest.New()
		server := regiontest.NewServer(regiontest.Options{
			Tokens:    map[string]regiontest.User{"old": {Name: rightstest.Program}, "new": {Name: rightstest.Program}},
			Authorize: grants.Authorize,
		})
		defer server.Close()
		config := server.Config()
		peer := func(token string) region.Peer {
			config.BearerToken = token
			creds, err := region.FromConfig(config)
			require.NoError(t, err)
			return region.Peer{Name: "a", Regions: []region.Key{k}, Credentials: creds}
		}
		source := &renewed{next: make(chan region.Peer)}
		ring, err := region.NewRing(source, region.Options{})
		require.NoError(t, err)
		routes, err := router.New(ring, router.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- ring.Start(ctx) }()
		source.next <- peer("old")
		synctest.Wait()
		source.next <- peer("new")
		time.Sleep(time.Minute)
		synctest.Wait()
		e := routes.Explain(ctx, k)
		require.Equal(t, region.Healthy, e.Health.State)
		require.ErrorIs(t, e.Health.Identity, region.ErrIdentityUnknown)
		require.ErrorIs(t, e.Health.Rotation, region.ErrIdentityUnknown)
		require.Regexp(t, `peer a: Healthy since .*, credentials of generation 1; .*identity unknown: grant get namespaces/kube-system.*; newer credentials are not in use: `, e.String())
		cancel()
		require.NoError(t, <-ended)
	})
}
