// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/validity"
)

// errDrained ends requests that still use replaced credentials after Drain.
var errDrained = errors.New("the credentials were replaced and the time to drain has passed")

// generation is one set of credentials in use. Apart from its bookkeeping it is immutable.
type generation struct {
	number     uint64
	creds      Credentials
	base       *url.URL
	own        http.RoundTripper // sends the peer's credentials
	caller     http.RoundTripper // verifies the server, and sends no credentials of ours
	superseded chan struct{}     // closed when a newer generation is in use, or the peer has left
	once       sync.Once         // closes superseded
	uid        atomic.Pointer[types.UID]
	term       atomic.Pointer[validity.Term] // of the credential that expires first

	mu            sync.Mutex
	flights       map[*flight]struct{}
	drained       bool
	firstRejected time.Time // time of the first 401 since the peer last accepted the credentials; zero if it accepts them
}

// newGeneration builds the transports. It does no network I/O.
func newGeneration(number uint64, creds Credentials) (*generation, error) {
	if err := creds.check(); err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(creds.config)
	if err != nil {
		return nil, err
	}
	g := &generation{
		number: number, creds: creds, base: base,
		superseded: make(chan struct{}), flights: make(map[*flight]struct{}),
	}
	own := copyConfig(creds.config)
	own.UserAgent = ""
	if g.own, err = rest.TransportFor(own); err != nil {
		return nil, err
	}
	if g.caller, err = rest.TransportFor(anonymous(creds.config)); err != nil {
		return nil, err
	}
	g.readTerm()
	return g, nil
}

// readTerm stores in which time the credentials are valid. It reads the files of certificates and tokens again, which may
// have changed.
func (g *generation) readTerm() {
	term := validity.First(validity.Of(g.creds.config))
	g.term.Store(&term)
}

// anonymous returns a copy of c with the fields that are needed to reach and verify the server, without our identity.
func anonymous(c *rest.Config) *rest.Config {
	a := rest.AnonymousClientConfig(c)
	a.UserAgent = ""
	a.Transport = c.Transport
	return a
}

// supersede wakes the requests that wait for newer credentials. After drain it ends the requests that still run on
// this generation.
func (g *generation) supersede(drain time.Duration) {
	g.once.Do(func() {
		close(g.superseded)
		closeIdle(g.own)
		closeIdle(g.caller)
		time.AfterFunc(drain, g.end)
	})
}

func (g *generation) end() {
	g.mu.Lock()
	g.drained = true
	flights := g.flights
	g.flights = nil
	g.mu.Unlock()
	for f := range flights {
		f.cancel(errDrained)
	}
	closeIdle(g.own)
	closeIdle(g.caller)
}

// closeIdle closes the idle connections of rt, if it supports that.
func closeIdle(rt http.RoundTripper) {
	for rt != nil {
		if closer, ok := rt.(interface{ CloseIdleConnections() }); ok {
			closer.CloseIdleConnections()
			return
		}
		wrapper, ok := rt.(utilnet.RoundTripperWrapper)
		if !ok {
			return
		}
		rt = wrapper.WrappedRoundTripper()
	}
}

// flight is one request from its start until its response's body is closed.
type flight struct {
	g      *generation
	cancel context.CancelCauseFunc
}

func (g *generation) begin(ctx context.Context) (context.Context, *flight) {
	ctx, cancel := context.WithCancelCause(ctx)
	f := &flight{g: g, cancel: cancel}
	g.mu.Lock()
	drained := g.drained
	if !drained {
		g.flights[f] = struct{}{}
	}
	g.mu.Unlock()
	if drained {
		cancel(errDrained)
	}
	return ctx, f
}

func (f *flight) end() {
	f.g.mu.Lock()
	delete(f.g.flights, f)
	f.g.mu.Unlock()
	f.cancel(context.Canceled)
}

// accepted records that the peer accepts the credentials.
func (g *generation) accepted() {
	g.mu.Lock()
	g.firstRejected = time.Time{}
	g.mu.Unlock()
}

// await waits until a newer generation is in use or the peer has left its Ring, and reports whether this happened in
// time. The time ends when bound has passed since the first of several 401 in a row, so that permanently rejected
// credentials do not delay every request.
func (g *generation) await(ctx context.Context, bound time.Duration) bool {
	g.mu.Lock()
	if g.firstRejected.IsZero() {
		g.firstRejected = time.Now()
	}
	left := time.Until(g.firstRejected.Add(bound))
	g.mu.Unlock()
	select {
	case <-g.superseded:
		return true
	default:
	}
	if left <= 0 {
		return false
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-g.superseded:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}
