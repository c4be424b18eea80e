// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// stage is whose turn it is in an exchange.
type stage int

const (
	byPeer   stage = iota // to take the request, and to send the answer
	byClient              // to send the request's body
	byReader              // the client, to take the answer
	stages
)

var errStalled = errors.New("the exchange made no progress")

// progress ends an exchange in which one side does nothing for longer than it may. As long as bytes move, it goes on.
type progress struct {
	limits  *Limits
	control *http.ResponseController
	cancel  context.CancelCauseFunc

	mu        sync.Mutex
	deadlines [stages]time.Time // of what is awaited; zero: nothing is
	timer     *time.Timer
	due       time.Time // when timer fires, at the first deadline or before; zero: not at all
	answered  bool      // uploads are no longer watched
	stalled   bool
	by        stage // who stalled
	ended     bool  // a Read of the body may come back later
}

// newProgress returns the context that an exchange must run with. end must be called after it.
func newProgress(ctx context.Context, w http.ResponseWriter, limits *Limits) (context.Context, *progress) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &progress{limits: limits, control: http.NewResponseController(w), cancel: cancel}
}

func (p *progress) end() {
	p.mu.Lock()
	p.ended = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.cancel(context.Canceled)
}

// limitBody keeps a client from holding w by a body of r that nobody reads: net/http waits for it before it answers.
func limitBody(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	if stalled := errors.Is(context.Cause(r.Context()), errStalled); !stalled && hasBody(r) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit))
	}
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// await says that it is the turn of s, beside others whose turn it may be.
func (p *progress) await(s stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expect(s)
}

// done says that s had its turn.
func (p *progress) done(s stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deadlines[s] = time.Time{}
}

// expect is await with p.mu held. A timer that fires too early is cheaper than one that is set for each piece.
func (p *progress) expect(s stage) {
	if p.stalled || p.ended {
		return
	}
	limit := [stages]time.Duration{byPeer: p.limits.Answer, byClient: p.limits.Body, byReader: p.limits.Read}[s]
	at := time.Now().Add(limit)
	p.deadlines[s] = at
	switch {
	case p.timer == nil:
		p.timer = time.AfterFunc(limit, p.expire)
	case p.due.IsZero() || at.Before(p.due):
		p.timer.Reset(limit)
	default:
		return
	}
	p.due = at
}

// expire ends the exchange if a deadline has passed, and looks again at the next one otherwise.
func (p *progress) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	now := time.Now()
	p.due = time.Time{}
	for s, at := range p.deadlines {
		switch {
		case at.IsZero():
		case !now.Before(at):
			p.stall(stage(s))
			return
		case p.due.IsZero() || at.Before(p.due):
			p.due = at
		}
	}
	if !p.due.IsZero() {
		p.timer.Reset(p.due.Sub(now))
	}
}

// stall ends the exchange. p.mu is held.
func (p *progress) stall(by stage) {
	p.stalled, p.by = true, by
	// A writer without deadlines is one of a test, or ends with its context.
	if by != byPeer {
		_ = p.control.SetReadDeadline(time.Unix(1, 0))
	}
	if by == byReader {
		_ = p.control.SetWriteDeadline(time.Unix(1, 0))
	}
	p.cancel(errStalled)
}

// answer says that the peer has begun to answer.
func (p *progress) answer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered, p.deadlines = true, [stages]time.Time{}
}

// pass hands the turn from one side to the other while a body is sent, until the peer answers.
func (p *progress) pass(from, to stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.answered {
		p.deadlines[from] = time.Time{}
		p.expect(to)
	}
}

// explain returns why the exchange ended, if that was not err.
func (p *progress) explain(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.stalled:
		return err
	case p.by == byClient:
		return refusal{http.StatusRequestTimeout, "the request's body did not arrive in time"}
	default:
		return refusal{http.StatusGatewayTimeout, "the region did not answer in time; if this was a write, it may have had an effect"}
	}
}

// cut reports whether the client is not heard any longer.
func (p *progress) cut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stalled && p.by != byPeer
}

// upload watches a request's body on its way to the peer.
type upload struct {
	io.ReadCloser
	progress *progress
	left     int64 // of what was announced; negative: nothing was

	mu           sync.Mutex
	whole, ended bool
}

// Read lets the client's turn begin, and the peer's when something has come.
func (u *upload) Read(b []byte) (int, error) {
	u.mu.Lock()
	if u.ended {
		u.mu.Unlock()
		return 0, http.ErrBodyReadAfterClose
	}
	u.mu.Unlock()
	u.progress.pass(byPeer, byClient)
	n, err := u.ReadCloser.Read(b)
	u.progress.pass(byClient, byPeer)
	u.mu.Lock()
	u.left -= int64(n)
	u.whole = u.whole || errors.Is(err, io.EOF) || u.left == 0
	u.mu.Unlock()
	return n, err
}

// end says that the exchange is over. A client that has not sent all has as long as for any part of it: net/http takes what
// comes, so that the client reads the answer instead of a reset.
func (u *upload) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	if !u.whole && !u.progress.cut() {
		_ = u.progress.control.SetReadDeadline(time.Now().Add(u.progress.limits.Body))
	}
}

// overtaken says that the peer answers. A server of net/http hands an answer on only once the body has come, unless told.
func (u *upload) overtaken() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.whole {
		_ = u.progress.control.EnableFullDuplex()
	}
}

// download watches an answer on its way from the peer.
type download struct {
	io.ReadCloser
	progress *progress
}

func (d *download) Read(b []byte) (int, error) {
	d.progress.await(byPeer)
	n, err := d.ReadCloser.Read(b)
	d.progress.done(byPeer)
	return n, err
}

// delivery watches an answer on its way to the client.
type delivery struct {
	http.ResponseWriter
	progress *progress
}

// piece is how much of an answer a client may take at a time at least, if it is not to be cut off.
const piece = 64 << 10

func (d *delivery) Write(b []byte) (written int, err error) {
	for first := true; first || len(b) > 0 && err == nil; first = false {
		part := b[:min(len(b), piece)]
		d.progress.await(byReader)
		n, failed := d.ResponseWriter.Write(part)
		d.progress.done(byReader)
		written, err, b = written+n, failed, b[n:]
	}
	return written, err
}

// FlushError is found by http.ResponseController.
func (d *delivery) FlushError() error {
	d.progress.await(byReader)
	defer d.progress.done(byReader)
	return d.progress.control.Flush()
}

// Unwrap lets http.ResponseController set deadlines.
func (d *delivery) Unwrap() http.ResponseWriter { return d.ResponseWriter }
