// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// breaker is a network that can be cut.
type breaker struct {
	mu   sync.Mutex
	cut  bool
	open map[*body]struct{}
}

var errCut = errors.New("the network is cut")

// wrap inserts the breaker into config's transport.
func (b *breaker) wrap(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if b.isCut() {
				return nil, errCut
			}
			resp, err := next.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			resp.Body = b.track(resp.Body)
			return resp, nil
		})
	})
	return config
}

func (b *breaker) isCut() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cut
}

func (b *breaker) track(rc io.ReadCloser) io.ReadCloser {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &body{ReadCloser: rc, breaker: b}
	if b.open == nil {
		b.open = map[*body]struct{}{}
	}
	b.open[t] = struct{}{}
	return t
}

// set cuts the network and the responses in progress if cut is true. Otherwise it restores the
// network.
func (b *breaker) set(cut bool) {
	b.mu.Lock()
	b.cut = cut
	var open []*body
	for t := range b.open {
		open = append(open, t)
	}
	b.mu.Unlock()
	if !cut {
		return
	}
	for _, t := range open {
		_ = t.Close() // makes the reader fail
	}
}

// body is a response body that can be cut off.
type body struct {
	io.ReadCloser
	breaker *breaker
}

func (t *body) Close() error {
	t.breaker.mu.Lock()
	delete(t.breaker.open, t)
	t.breaker.mu.Unlock()
	return t.ReadCloser.Close()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
