// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// Attempt records the outcome of the requests of one context, so that a caller knows whether a failed write may have
// had an effect. The zero value is ready. It is safe for concurrent use. The transport may still write to it after the
// request's context ended: Sent can change from false to true until the call has returned.
type Attempt struct {
	traced     atomic.Bool // the transport calls the hooks of httptrace
	passed     atomic.Bool // the request was given to the transport
	sent       atomic.Bool // the transport wrote to the connection, or a response came
	writes     atomic.Int32
	repeated   atomic.Bool // the transport wrote more than once by itself
	status     atomic.Int32
	retryAfter atomic.Int64
}

// WithAttempt returns a context whose requests to peers are recorded in a. The Conn removes Retry-After from the
// responses (see RetryAfter), so that client-go does not repeat the requests: each call of a client is at most one
// request. Exceptions are a request that was rejected with 401 and sent again with newer credentials, and repetitions
// by the transport (see Repeated).
func WithAttempt(ctx context.Context, a *Attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

type attemptKey struct{}

func attemptOf(ctx context.Context) *Attempt {
	a, _ := ctx.Value(attemptKey{}).(*Attempt)
	return a
}

// Sent reports whether any part of the request may have reached the peer. It returns false only if certainly nothing
// was sent: the request did not reach the transport, or the transport traced no write. For a transport that does not
// call the hooks of net/http/httptrace, Sent returns true unless the connection was refused.
func (a *Attempt) Sent() bool {
	return a.sent.Load() || a.repeated.Load() || a.passed.Load() && !a.traced.Load()
}

// Repeated reports whether the transport itself sent the request more than once, as HTTP/2 does after GOAWAY,
// REFUSED_STREAM and PROTOCOL_ERROR. After PROTOCOL_ERROR the first request may have had an effect, so an error such as
// AlreadyExists or NotFound can be a result of the request itself.
func (a *Attempt) Repeated() bool { return a.repeated.Load() }

// Status is the last HTTP status code received; 0 if there was no response.
func (a *Attempt) Status() int { return int(a.status.Load()) }

// RetryAfter is the delay that the peer requested before another attempt; zero if it requested none.
func (a *Attempt) RetryAfter() time.Duration { return time.Duration(a.retryAfter.Load()) }

// trace sets hooks through which the transport reports to a.
func (a *Attempt) trace(hooks *httptrace.ClientTrace) {
	a.passed.Store(true)
	hooks.GetConn = func(string) { a.traced.Store(true) }
	hooks.WroteHeaders = func() {
		a.sent.Store(true)
		if a.writes.Add(1) > 1 {
			a.repeated.Store(true)
		}
	}
	hooks.WroteRequest = func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			a.sent.Store(true)
		}
	}
}

// failed records that nothing was sent if err means that the connection was refused. Sent needs this record for a
// transport that does not call the trace hooks.
func (a *Attempt) failed(err error) {
	if errors.Is(err, syscall.ECONNREFUSED) {
		a.passed.Store(false)
	}
}

// reset resets a before the request is sent again. The peer rejected the first request before it had any effect.
func (a *Attempt) reset() {
	a.traced.Store(false)
	a.passed.Store(false)
	a.sent.Store(false)
	a.writes.Store(0)
	a.status.Store(0)
	a.retryAfter.Store(0)
}

// received records the response and removes Retry-After, so that client-go does not retry.
func (a *Attempt) received(resp *http.Response) {
	a.sent.Store(true)
	a.status.Store(int32(resp.StatusCode))
	if seconds, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 32); err == nil && seconds > 0 {
		a.retryAfter.Store(int64(time.Duration(seconds) * time.Second))
	}
	resp.Header.Del("Retry-After")
}
