// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"sync/atomic"

	"github.com/atoll-dev/atoll/internal/requestinfo"
	"github.com/atoll-dev/atoll/region"
)

// clientTransport carries the requests of one Client.
type clientTransport struct {
	router  *Router
	key     region.Key
	id      Identity
	stamp   http.Header // the headers of the identity
	history *history
	bound   atomic.Pointer[binding] // the binding that was used last
}

// binding is a connection, with the transport that sends requests over it as the Client's identity.
type binding struct {
	conn *region.Conn
	rt   http.RoundTripper
}

func newTransport(r *Router, k region.Key, id Identity) *clientTransport {
	return &clientTransport{router: r, key: k, id: id, stamp: id.headers(), history: newHistory()}
}

func (t *clientTransport) conn() (*region.Conn, error) {
	conn, _, err := t.router.conn(context.Background(), t.key)
	return conn, err
}

// RoundTrip looks up the peer and sends it a copy of req, without req's identity headers, as the Client's identity.
func (t *clientTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	conn, budget, err := t.router.conn(req.Context(), t.key)
	if err != nil {
		t.router.opts.Observer.routed(req.Context(), RouteEvent{Region: t.key, Err: err})
		closeBody(req)
		return nil, err
	}
	t.router.opts.Observer.routed(req.Context(), RouteEvent{Region: t.key, Peer: conn.Peer()})
	resp, err := t.send(conn, budget, req)
	if err != nil {
		closeBody(req)
		return nil, &region.Error{Peer: conn.Peer(), Region: t.key, Op: req.Method, Err: inner(err, conn.Peer())}
	}
	return resp, nil
}

// send sends req over conn, once the region's budget has a place for it. It answers 410 itself, without a request, if
// req continues from a resourceVersion of an earlier connection.
func (t *clientTransport) send(conn *region.Conn, budget *budget, req *http.Request) (*http.Response, error) {
	if err := t.router.guards.place(t.id, conn.Peer()); err != nil {
		return nil, err
	}
	if t.history.foreign(conn, req) {
		closeBody(req)
		return gone(req, t.key), nil
	}
	give, err := budget.take(req.Context())
	if err != nil {
		return nil, err
	}
	info, _ := requestinfo.Of(req)
	if info.IsLongRunning() {
		defer give() // a stream takes a place in flight only until it has begun
		if give, err = budget.open(req.Context()); err != nil {
			return nil, err
		}
	}
	resp, err := t.exchange(conn, req, info.Verb == "watch")
	if err != nil {
		give()
		return nil, err
	}
	resp.Body = &countedBody{ReadCloser: resp.Body, give: give}
	return resp, nil
}

// exchange sends a copy of req over conn, with the headers and credentials of the identity. It ends a watch when
// another connection serves the region.
func (t *clientTransport) exchange(conn *region.Conn, req *http.Request, watch bool) (*http.Response, error) {
	var follow *follower
	ctx := req.Context()
	if watch {
		follow, ctx = t.follow(conn, req)
	}
	out := req.Clone(ctx)
	t.router.guards.inbound(out.Header)
	maps.Copy(out.Header, t.stamp)
	resp, err := t.speak(conn).RoundTrip(out)
	if err != nil {
		follow.stop()
		return nil, refusedUs(inner(err, conn.Peer()))
	}
	if err := accepted(t.id, resp); err != nil {
		follow.stop()
		return nil, err
	}
	t.history.note(conn, req, resp)
	if watch {
		resp.Body = &watchBody{ReadCloser: resp.Body, follower: follow}
	}
	resp.Request = req
	return resp, nil
}

// speak returns the transport for requests over conn with the credentials for the identity.
func (t *clientTransport) speak(conn *region.Conn) http.RoundTripper {
	if b := t.bound.Load(); b != nil && b.conn == conn {
		return b.rt
	}
	b := &binding{conn: conn, rt: t.router.guards.transport(t.id, conn)}
	t.bound.Store(b)
	return b.rt
}

// inner removes an outer *region.Error that names only the peer: the caller wraps the result in one that names
// the region too.
func inner(err error, peer region.PeerName) error {
	if e, ok := err.(*region.Error); ok && e.Peer == peer { //nolint:errorlint // check only the outermost error
		return e.Err
	}
	return err
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

var errMoved = errors.New("the region moved to another peer")

// follower cancels a watch when the watch's connection no longer serves the region.
type follower struct {
	ctx    func() error // returns the cause of the end of the watch
	cancel context.CancelCauseFunc
	done   chan struct{}
}

func (t *clientTransport) follow(conn *region.Conn, req *http.Request) (*follower, context.Context) {
	ctx, cancel := context.WithCancelCause(req.Context())
	f := &follower{ctx: func() error { return context.Cause(ctx) }, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		for range t.router.tables(ctx) {
			if now, err := t.conn(); err != nil || now != conn {
				t.history.end(req)
				cancel(errMoved)
				return
			}
		}
	}()
	return f, ctx
}

// stop ends the follower's goroutine and waits for it. It does nothing on a nil follower.
func (f *follower) stop() {
	if f != nil {
		f.cancel(context.Canceled)
		<-f.done
	}
}

// watchBody is the body of a watch. If the region moved, or could not be looked up, Read returns io.EOF, as if the
// server had closed the watch.
type watchBody struct {
	io.ReadCloser
	*follower
}

func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && errors.Is(b.ctx(), errMoved) {
		err = io.EOF
	}
	return n, err
}

func (b *watchBody) Close() error {
	err := b.ReadCloser.Close()
	b.stop()
	return err
}
