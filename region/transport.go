// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ownTransport carries requests with the peer's own credentials. A request that has an Authorization header is sent
// with this header instead, like a request of callerTransport.
type ownTransport struct{ conn *Conn }

// RoundTrip sends req with the current generation of the credentials. A 401 is decided before a request has any effect,
// so a request with any verb may be sent again, once per newer generation, if its body can be rewound.
func (t *ownTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	g := t.conn.current.Load()
	if err := t.conn.verified(req.Context(), g); err != nil {
		discard(req)
		return nil, err
	}
	if req.Header.Get("Authorization") != "" {
		return t.conn.send(g, asCaller, req)
	}
	for {
		resp, err := t.conn.send(g, asPeer, req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusUnauthorized {
			g.accepted()
			return resp, nil
		}
		t.conn.Refresh() // also for a request that cannot be sent again: the caller's next one needs newer credentials
		again, ok := rewind(req)
		if !ok {
			return resp, nil
		}
		if !g.await(req.Context(), t.conn.opts.Await) {
			discard(again)
			return resp, nil
		}
		// Draining the body lets the connection be reused; the body is a Status object of some hundred bytes.
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
		_ = resp.Body.Close()
		if attempt := attemptOf(req.Context()); attempt != nil {
			attempt.reset()
		}
		g, req = t.conn.current.Load(), again
	}
}

// rewind returns a copy of req that can be sent again.
func rewind(req *http.Request) (*http.Request, bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	again := *req
	again.Body = body
	return &again, true
}

func discard(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// callerTransport carries requests with the token in their own Authorization header.
type callerTransport struct{ conn *Conn }

func (t *callerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(token) == "" {
		discard(req)
		return nil, &Error{Peer: t.conn.Peer(), Op: req.Method, Err: errors.New("a caller's request needs its own bearer token")}
	}
	g := t.conn.current.Load()
	if err := t.conn.verified(req.Context(), g); err != nil {
		discard(req)
		return nil, err
	}
	return t.conn.send(g, asCaller, req)
}

// generationTransport sends requests with one generation of the credentials, whether it is in use or not.
type generationTransport struct {
	conn *Conn
	g    *generation
}

func (t *generationTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.conn.send(t.g, asPeer, req)
}

// Credentials of a request: the peer's own, or the caller's token.
const (
	asPeer   = false
	asCaller = true
)

// send makes one request on g.
func (c *Conn) send(g *generation, caller bool, req *http.Request) (*http.Response, error) {
	rt := g.own
	if caller {
		rt = g.caller
	}
	if c.retired.Load() {
		discard(req)
		return nil, &Error{Peer: c.Peer(), Op: req.Method, Err: ErrUnknownPeer}
	}
	ctx := req.Context()
	if err := context.Cause(ctx); err != nil {
		discard(req)
		return nil, &Error{Peer: c.Peer(), Op: req.Method, Err: err}
	}
	attempt, way := attemptOf(ctx), &stage{}
	ctx = way.trace(ctx, attempt)
	ctx, done := c.opts.Observer.call(ctx, CallEvent{
		Peer: c.Peer(), Method: req.Method, Generation: g.number, Caller: caller,
	})
	ctx, flight := g.begin(ctx)
	out := req.Clone(ctx)
	out.URL, out.Host = g.locate(req.URL), ""
	resp, err := rt.RoundTrip(out)
	if err == nil && isRedirect(resp) {
		err = fmt.Errorf("the peer answers with a redirect (%d), which is not followed", resp.StatusCode)
		_ = resp.Body.Close()
	}
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errDrained) {
			err = cause
		}
		if attempt != nil {
			attempt.failed(err)
		}
		flight.end()
		err = c.failed(req, way.timedOut(err))
		done(0, err)
		return nil, err
	}
	c.contact.Store(time.Now().UnixNano())
	if attempt != nil {
		attempt.received(resp)
	}
	done(resp.StatusCode, nil)
	resp.Body = flight.body(resp.Body)
	resp.Request = req
	return resp, nil
}

// failed wraps err with the peer and the method. A request that its caller canceled does not mean that the peer is
// unavailable.
func (c *Conn) failed(req *http.Request, err error) error {
	if !errors.Is(err, context.Canceled) && !errors.Is(req.Context().Err(), context.Canceled) {
		err = &unavailable{err}
	}
	return &Error{Peer: c.Peer(), Op: req.Method, Err: err}
}

// locate returns u with the scheme, host and path prefix of g's server.
func (g *generation) locate(u *url.URL) *url.URL {
	moved := *u
	moved.Scheme, moved.Host, moved.User = g.base.Scheme, g.base.Host, nil
	if prefix := strings.TrimSuffix(g.base.Path, "/"); prefix != "" {
		if u.RawPath != "" || g.base.RawPath != "" {
			moved.RawPath = strings.TrimSuffix(g.base.EscapedPath(), "/") + u.EscapedPath()
		}
		moved.Path = prefix + u.Path
	}
	return &moved
}

// isRedirect reports whether following resp would send the request and its credentials elsewhere.
func isRedirect(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	default:
		return false
	}
}

// body wraps b so that the flight ends when b is closed or read to its end.
func (f *flight) body(b io.ReadCloser) io.ReadCloser {
	if b == nil {
		b = http.NoBody
	}
	watched := &flightBody{ReadCloser: b, flight: f}
	if w, ok := b.(io.Writer); ok {
		return struct {
			*flightBody
			io.Writer
		}{watched, w}
	}
	return watched
}

type flightBody struct {
	io.ReadCloser
	flight *flight
}

func (b *flightBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.flight.end()
		if errors.Is(err, context.DeadlineExceeded) {
			err = &unavailable{&timeout{CauseTimeout, err}} // after the response had begun
		}
	}
	return n, err
}

func (b *flightBody) Close() error {
	err := b.ReadCloser.Close()
	b.flight.end()
	return err
}
