// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"
)

// ErrTooLarge means that a response, or a watch event, exceeds the limit of its reader. List in smaller pages
// (limit), or make fewer requests at one time.
var ErrTooLarge = errors.New("the answer is too large")

// limits bound the responses that the clients of an API read, in bytes after decompression, if the context has no
// Meter.
type limits struct{ answer, event, held int64 }

// usual are the limits without a Meter. They allow a page of 500 objects of half a MiB each. A watch event holds one
// object, and an API server accepts at most 3 MiB for one object.
var usual = limits{answer: 256 << 20, event: 16 << 20, held: 512 << 20}

// Meter accounts for the memory of one response. Its methods are never called concurrently.
type Meter interface {
	// Took is called with the size of each piece of the response, in bytes after decompression. If it returns an error,
	// reading ends with that error and the connection is closed.
	Took(n int) error
	// Ended is called after each watch event, and at the end of the response.
	Ended()
}

type meterKey struct{}

// WithMeter returns a context for one call of a client of an API. newMeter is called once for each response; watch
// reports whether it is a watch. A watch that is encoded as protobuf gets no Meter: client-go itself limits its events.
// Without a Meter, a response is limited to 256 MiB, a watch event to 16 MiB, and all responses of one API that are
// read at the same time to 512 MiB; the error is ErrTooLarge. Transports, such as that of Conn.Config, have no limit,
// because they hold nothing in memory.
func WithMeter(ctx context.Context, newMeter func(watch bool) Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, newMeter)
}

// metered is a RoundTripper that counts the bytes of the response bodies that its clients decode.
type metered struct {
	next   http.RoundTripper
	limits limits
	held   *semaphore.Weighted // bytes of all responses that are read at the same time
}

// meteredClient returns a copy of client that meters responses.
func meteredClient(client *http.Client, l limits) *http.Client {
	counted := *client
	if counted.Transport == nil {
		counted.Transport = http.DefaultTransport
	}
	counted.Transport = &metered{next: counted.Transport, limits: l, held: semaphore.NewWeighted(l.held)}
	return &counted
}

func (t *metered) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil || resp.Body == nil {
		return resp, err
	}
	var body *meteredBody
	switch watch := req.URL.Query().Get("watch"); {
	case watch != "" && watch != "false" && watch != "0" && !strings.Contains(resp.Header.Get("Content-Type"), "protobuf"):
		body = &meteredBody{ReadCloser: resp.Body, events: &eventScanner{}}
	case watch != "" && watch != "false" && watch != "0":
		return resp, nil // client-go bounds the length of each frame
	default:
		body = &meteredBody{ReadCloser: resp.Body}
	}
	if newMeter, ok := req.Context().Value(meterKey{}).(func(bool) Meter); ok {
		body.meter = newMeter(body.events != nil)
	} else {
		body.meter = &allowance{transport: t, limit: t.limits.answer}
		if body.events != nil {
			body.meter = &allowance{transport: t, limit: t.limits.event}
		}
	}
	resp.Body = body
	return resp, nil
}

// WrappedRoundTripper gives client-go access to the wrapped transport.
func (t *metered) WrappedRoundTripper() http.RoundTripper { return t.next }

type meteredBody struct {
	io.ReadCloser
	meter  Meter
	events *eventScanner // nil unless the response is a watch
	err    error

	mu     sync.Mutex // guards meter: a watch may be closed while it is read
	closed bool
}

func (b *meteredBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	if b.events == nil {
		b.took(n)
	} else {
		for rest := p[:n]; len(rest) > 0 && b.err == nil; {
			size, ended := b.events.scan(rest)
			b.took(size)
			if rest = rest[size:]; ended {
				b.ended(false)
			}
		}
	}
	if b.err != nil {
		_ = b.ReadCloser.Close() // the response cannot be read any further
		return 0, b.err
	}
	return n, err
}

func (b *meteredBody) took(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && n > 0 && !b.closed {
		b.err = b.meter.Took(n)
	}
}

func (b *meteredBody) ended(closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.meter.Ended()
	}
	b.closed = b.closed || closed
}

func (b *meteredBody) Close() error {
	err := b.ReadCloser.Close()
	b.ended(true)
	return err
}

// allowance is the Meter of a call whose context has no Meter.
type allowance struct {
	transport   *metered
	limit, used int64
}

func (a *allowance) Took(n int) error {
	if a.used+int64(n) > a.limit {
		return fmt.Errorf("%w: it has more than %d bytes: list in smaller pages (limit)", ErrTooLarge, a.limit)
	}
	if !a.transport.held.TryAcquire(int64(n)) {
		return fmt.Errorf("%w: the answers of this API server that are read now have %d bytes: make fewer requests at one time, or list in smaller pages (limit)", ErrTooLarge, a.transport.limits.held)
	}
	a.used += int64(n)
	return nil
}

func (a *allowance) Ended() {
	a.transport.held.Release(a.used)
	a.used = 0
}

// eventScanner finds where the JSON values of a stream end.
type eventScanner struct {
	depth           int
	quoted, escaped bool
}

// scan returns how many bytes of p belong to the current value, and whether the value ends with the last of them.
func (s *eventScanner) scan(p []byte) (size int, ended bool) {
	for i, c := range p {
		switch {
		case s.escaped:
			s.escaped = false
		case s.quoted && c == '\\':
			s.escaped = true
		case c == '"':
			s.quoted = !s.quoted
		case s.quoted:
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			if s.depth--; s.depth <= 0 {
				s.depth = 0
				return i + 1, true
			}
		}
	}
	return len(p), false
}
