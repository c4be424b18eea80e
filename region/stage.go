// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"
)

// stage is how far a request came on its way to the peer, which tells a host that is away from a server that is frozen.
type stage struct{ reached atomic.Int32 }

const (
	unsent    int32 = iota // or the transport does not report
	resolving              // the host name
	dialing
	handshaking // or beyond: the server's kernel accepted
)

// reach notes that the request came so far. An address or a connection that is tried beside it takes nothing back.
func (s *stage) reach(to int32) {
	for {
		was := s.reached.Load()
		if was >= to || s.reached.CompareAndSwap(was, to) {
			return
		}
	}
}

// trace returns a context through which the transport reports to s, and to a unless it is nil.
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

// timedOut says how far a request came whose time was over. Other errors it returns as they are.
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
