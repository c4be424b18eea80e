// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"
)

// stage is how far a request came on its way to the peer. It distinguishes an unreachable host from a frozen server.
type stage struct{ reached atomic.Int32 }

const (
	unsent    int32 = iota // nothing was sent yet, or the transport does not trace
	resolving              // the host name
	dialing
	handshaking // or later: the server's kernel accepted the connection
)

// reach records that the request reached this stage. Parallel attempts on other addresses never lower the recorded
// stage.
func (s *stage) reach(to int32) {
	for {
		was := s.reached.Load()
		if was >= to || s.reached.CompareAndSwap(was, to) {
			return
		}
	}
}

// trace returns a context whose hooks record the stage in s, and the request in a unless a is nil.
func (s *stage) trace(ctx context.Context, a *Attempt) context.Context {
	hooks := &httptrace.ClientTrace{
		DNSStart:          func(httptrace.DNSStartInfo) { s.reach(resolving) },
		ConnectStart:      func(string, string) { s.reach(dialing) },
		TLSHandshakeStart: func() { s.reach(handshaking) },
		GotConn:           func(httptrace.GotConnInfo) { s.reach(handshaking) },
	}
	if a != nil {
		a.trace(hooks)
	}
	return httptrace.WithClientTrace(ctx, hooks)
}

// timedOut converts an exceeded deadline into a timeout with the stage that the request reached. It returns other
// errors unchanged.
func (s *stage) timedOut(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	switch s.reached.Load() {
	case resolving:
		return &timeout{CauseDNS, err}
	case dialing:
		return &timeout{CauseConnectTimeout, err}
	default:
		return &timeout{CauseTimeout, err}
	}
}
