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

// stage is the side of an exchange that must act next.
type stage int

const (
	byPeer   stage = iota // the peer must take the request and send the answer
	byClient              // the client must send the request's body
	byReader              // the client must read the answer
	stages
)

var errStalled = errors.New("the exchange made no progress")

// progress ends an exchange if one side does nothing for longer than its limit. An exchange has no time limit as
// long as its bytes move.
type progress struct {
	limits  *Limits
	control *http.ResponseController
	cancel  context.CancelCauseFunc

	mu            sync.Mutex
	deadlines     [stages]time.Time // per stage; zero: the stage has no deadline now
	timer         *time.Timer
	due           time.Time // when the timer fires, at or before the first deadline; zero: the timer is stopped
	bodyUnlimited bool      // the sending of the request's body no longer has a limit
	stalled       bool
	stalledStage  stage // the stage that stalled
	ended         bool  // end was called: no deadline starts any more, although a Read of the body may still return
}

// newProgress returns the progress of an exchange, and the context that the exchange must use. The caller must call
// end after the exchange.
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

// limitBody sets a read deadline for the body of r, which the caller does not read: net/http waits for the body
// before it answers.
func limitBody(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	if stalled := errors.Is(context.Cause(r.Context()), errStalled); !stalled && hasBody(r) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit))
	}
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// await starts the deadline of s. The deadlines of other stages continue.
func (p *progress) await(s stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expect(s)
}

// done stops the deadline of s.
func (p *progress) done(s stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deadlines[s] = time.Time{}
}

// expect starts the deadline of s. The caller holds p.mu. expect leaves a timer that fires too early as it is:
// expire sets it again, which is cheaper than a Reset for each write.
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

// expire ends the exchange if a deadline has passed. Otherwise it sets the timer to the next deadline.
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

// stall ends the exchange because the stage by has stalled. The caller holds p.mu.
func (p *progress) stall(by stage) {
	p.stalled, p.stalledStage = true, by
	// Errors are ignored: a writer without deadlines exists only in tests, or ends with its context.
	if by != byPeer {
		_ = p.control.SetReadDeadline(time.Unix(1, 0))
	}
	if by == byReader {
		_ = p.control.SetWriteDeadline(time.Unix(1, 0))
	}
	p.cancel(errStalled)
}

// answer records that the peer has begun to answer, and stops all deadlines.
func (p *progress) answer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bodyUnlimited, p.deadlines = true, [stages]time.Time{}
}

// advance stops the deadline of one stage and starts the deadline of the next one, while a body is sent. After the
// peer has begun to answer, it does nothing.
func (p *progress) advance(from, to stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.bodyUnlimited {
		p.deadlines[from] = time.Time{}
		p.expect(to)
	}
}

// explain returns a refusal if the exchange has stalled, and err otherwise.
func (p *progress) explain(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.stalled:
		return err
	case p.stalledStage == byClient:
		return refusal{http.StatusRequestTimeout, "the request's body did not arrive in time"}
	default:
		return refusal{http.StatusGatewayTimeout, "the region did not answer in time; if this was a write, it may have had an effect"}
	}
}

// cut reports whether the exchange stalled on the client's side, so that stall cut the client's connection.
func (p *progress) cut() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stalled && p.stalledStage != byPeer
}

// upload sets deadlines while a request's body is sent to the peer.
type upload struct {
	io.ReadCloser
	progress *progress
	left     int64 // of Content-Length, not yet read; negative: unknown

	mu           sync.Mutex
	whole, ended bool
}

// Read runs the client's deadline until bytes arrive, then the peer's.
func (u *upload) Read(b []byte) (int, error) {
	u.mu.Lock()
	if u.ended {
		u.mu.Unlock()
		return 0, http.ErrBodyReadAfterClose
	}
	u.mu.Unlock()
	u.progress.advance(byPeer, byClient)
	n, err := u.ReadCloser.Read(b)
	u.progress.advance(byClient, byPeer)
	u.mu.Lock()
	u.left -= int64(n)
	u.whole = u.whole || errors.Is(err, io.EOF) || u.left == 0
	u.mu.Unlock()
	return n, err
}

// end ends the upload. A client that has not sent its whole body gets Limits.Body once more: net/http reads the
// rest, so that the client receives the answer and not a connection reset.
func (u *upload) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	if !u.whole && !u.progress.cut() {
		_ = u.progress.control.SetReadDeadline(time.Now().Add(u.progress.limits.Body))
	}
}

// overtaken records that the peer answers before the whole body was sent. Without full duplex, net/http would send
// the answer only after the whole body.
func (u *upload) overtaken() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.whole {
		_ = u.progress.control.EnableFullDuplex()
	}
}

// download sets deadlines while an answer is read from the peer.
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

// delivery sets deadlines while an answer is written to the client.
type delivery struct {
	http.ResponseWriter
	progress *progress
}

// piece is the part of an answer that a client must read within Limits.Read.
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

// FlushError is called by http.ResponseController.
func (d *delivery) FlushError() error {
	d.progress.await(byReader)
	defer d.progress.done(byReader)
	return d.progress.control.Flush()
}

// Unwrap lets http.ResponseController set deadlines.
func (d *delivery) Unwrap() http.ResponseWriter { return d.ResponseWriter }
