// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"sync"
	"time"
)

var (
	errNoAnswer  = fmt.Errorf("the region did not begin to answer: %w", context.DeadlineExceeded)
	errRecovered = errors.New("the region answers again, and the request was sent before")
)

// attempt is one request to a region. Its context ends with a cause if the region does not begin to answer in time.
// It also ends if the region recovers first: a request sent while the region was unreachable may never get an
// answer.
type attempt struct {
	cancel context.CancelCauseFunc
	cause  func() error // returns why the context ended; nil before its end
	begun  chan struct{}
	once   sync.Once
	done   chan struct{}
}

// newAttempt begins an attempt and returns its context. The region must begin to answer within patience. A nil
// recovered channel never ends the attempt.
func newAttempt(ctx context.Context, patience time.Duration, recovered <-chan struct{}) (context.Context, *attempt) {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attempt{cancel: cancel, begun: make(chan struct{}), done: make(chan struct{})}
	a.cause = func() error { return context.Cause(ctx) }
	go func() {
		defer close(a.done)
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(errNoAnswer)
		case <-recovered:
			cancel(errRecovered)
		case <-a.begun:
		}
	}()
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: a.answered}), a
}

// answered records that the region has begun to answer.
func (a *attempt) answered() { a.once.Do(func() { close(a.begun) }) }

// accepted ends the wait for the beginning of the answer to a request that returned err; it does not end the context.
// If the attempt's context had already ended, accepted returns the cause, together with err. Otherwise it returns err.
func (a *attempt) accepted(err error) error {
	a.answered()
	<-a.done
	switch cause := a.cause(); {
	case cause == nil || errors.Is(err, cause):
		return err
	case err == nil:
		return cause
	default:
		return fmt.Errorf("%w: %w", cause, err) // err names the peer
	}
}

// end ends the attempt and its context. It returns nil if err is nil, and otherwise what accepted returns.
func (a *attempt) end(err error) error {
	if err != nil {
		err = a.accepted(err)
	}
	a.answered()
	<-a.done
	a.cancel(nil)
	return err
}
