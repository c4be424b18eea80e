// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// stalledBody is a request body that returns one byte, and ends only when its context ends.
type stalledBody struct {
	ctx   context.Context //nolint:containedctx // of the request that it is the body of
	begun bool
}

func (b *stalledBody) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		return copy(p, "{"), nil
	}
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

// TestOneRegionDoesNotTakeDownTheOthers floods the proxy as alice: with requests to a frozen API
// server of the region eu, or with requests to the region us whose bodies never end. All of bob's
// requests to us must succeed.
func TestOneRegionDoesNotTakeDownTheOthers(t *testing.T) {
	const workers, requests = 450, 100
	g := newGateway(t)
	send := func(ctx context.Context, method, path, token string, body io.Reader) (int, error) {
		req, err := http.NewRequestWithContext(ctx, method, g.server.URL+path, body)
		if err != nil {
			return 0, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := g.server.Client().Do(req)
		if err != nil {
			return 0, err
		}
		defer func() { _ = resp.Body.Close() }()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	for name, attack := range map[string]func(ctx context.Context){
		"frozen": func(ctx context.Context) {
			_, _ = send(ctx, http.MethodGet, "/regions/eu-west-1.loodse/api/v1/namespaces/default/configmaps", "token-of-alice", nil)
		},
		"stalled bodies": func(ctx context.Context) {
			_, _ = send(ctx, http.MethodPost, "/regions/us-east-1.loodse/api/v1/namespaces/default/configmaps", "token-of-alice", &stalledBody{ctx: ctx})
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "frozen" {
				require.NoError(t, g.planes[0].Pause(t.Context()))
				defer func() { require.NoError(t, g.planes[0].Resume(context.WithoutCancel(t.Context()))) }()
			}
			ctx, cancel := context.WithCancel(t.Context())
			var attackers sync.WaitGroup
			defer attackers.Wait()
			defer cancel()
			started := make(chan struct{}, workers)
			for range workers {
				attackers.Go(func() {
					started <- struct{}{}
					attack(ctx)
				})
			}
			for range workers {
				<-started
			}
			for n := range requests {
				code, err := send(t.Context(), http.MethodGet, "/regions/us-east-1.loodse/version", "token-of-bob", nil)
				require.NoError(t, err)
				require.Equal(t, http.StatusOK, code, "request %d", n)
			}
		})
	}
}
