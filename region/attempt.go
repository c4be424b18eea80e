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

// Attempt records what became of the requests of one context: what a caller must know before it may say that a write
// had no effect. The zero value is ready. It is safe for concurrent use; a transport may still write to it after the
// request's context ended, so what it says may change from "not sent" to "sent" until the call has returned.
type Attempt struct {
	traced     atomic.Bool // the transport reports what it does
	passed     atomic.Bool // given to the transport
	sent       atomic.Bool // the transport wrote to the wire, or an answer came
	writes     atomic.Int32
	repeated   atomic.Bool // the transport wrote more than once by itself
	status     atomic.Int32
	retryAfter atomic.Int64
}

// WithAttempt returns a context whose requests to peers are recorded in a. Retry-After is taken out of their responses
// (see RetryAfter), so that client-go does not repeat them: each call of a client is at most one request, apart from
// one that was answered 401 and sent again with newer credentials, and from what the transport repeats (see Repeated).
func WithAttempt(ctx context.Context, a *Attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

type attemptKey struct{}

func attemptOf(ctx context.Context) *Attempt {
	a, _ := ctx.Value(attemptKey{}).(*Attempt)
	return a
}

// Sent says whether anything may have reached the peer. It is false only if that is certain: the request never got to
// the transport, or the transport says that it wrote nothing. A transport that does not call net/http/httptrace's hooks
// is taken to have sent what it was given, unless the connection was refused.
func (a *Attempt) Sent() bool {
	return a.sent.Load() || a.repeated.Load() || a.passed.Load() && !a.traced.Load()
}

// Repeated says whether the transport sent the request more than once by itself, as that of HTTP/2 does after GOAWAY,
// REFUSED_STREAM and PROTOCOL_ERROR. The last of these does not say that the request had no effect, so an answer other
// than success tells of the repetition alone: that an object exists already, or is gone, may be the request's own doing.
func (a *Attempt) Repeated() bool { return a.repeated.Load() }

// Status is the last HTTP status code that was received, 0 if none was.
func (a *Attempt) Status() int { return int(a.status.Load()) }

// RetryAfter is how long the peer asked to wait before another attempt; zero if it did not.
func (a *Attempt) RetryAfter() time.Duration { return time.Duration(a.retryAfter.Load()) }

// trace makes the transport report to a through hooks.
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

// failed notes that nobody listened, which a transport that does not trace can say in no other way.
func (a *Attempt) failed(err error) {
	if errors.Is(err, syscall.ECONNREFUSED) {
		a.passed.Store(false)
	}
}

// again forgets a request that was refused before it had any effect, since it is sent anew.
func (a *Attempt) again() {
	a.traced.Store(false)
	a.passed.Store(false)
	a.sent.Store(false)
	a.writes.Store(0)
	a.status.Store(0)
	a.retryAfter.Store(0)
}

// received notes the answer and hides from client-go that it may be tried again.
func (a *Attempt) received(resp *http.Response) {
	a.sent.Store(true)
	a.status.Store(int32(resp.StatusCode))
	if seconds, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 32); err == nil && seconds > 0 {
		a.retryAfter.Store(int64(time.Duration(seconds) * time.Second))
	}
	resp.Header.Del("Retry-After")
}
