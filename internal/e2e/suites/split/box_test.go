// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// box is a network that can be cut, between the process and one API server. What is sent while it is cut is lost, without
// a word to either end; the connections that lost something are reset when it is whole again.
type box struct {
	to string

	mu    sync.Mutex
	whole chan struct{} // closed unless the network is cut
}

// newBox returns a box in front of a server, and its own address.
func newBox(t *testing.T, server string) (b *box, url string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	b = &box{to: strings.TrimPrefix(server, "https://"), whole: make(chan struct{})}
	close(b.whole)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { b.serve(ctx, conn) })
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		serving.Wait()
	})
	return b, "https://" + listener.Addr().String()
}

func (b *box) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.whole = make(chan struct{})
}

func (b *box) mend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.whole)
}

// through says whether the network is whole, and waits until it is, or ctx ends, if not.
func (b *box) through(ctx context.Context) bool {
	b.mu.Lock()
	whole := b.whole
	b.mu.Unlock()
	select {
	case <-whole:
		return true
	default:
	}
	select {
	case <-whole:
	case <-ctx.Done():
	}
	return false
}

// serve passes on what one connection says, in both directions, until either end closes it.
func (b *box) serve(ctx context.Context, conn net.Conn) {
	shut := func(c net.Conn) { _ = c.Close() } // either end may have done it
	defer shut(conn)
	if !b.through(ctx) {
		return
	}
	server, err := new(net.Dialer).DialContext(ctx, "tcp", b.to)
	if err != nil {
		return
	}
	defer shut(server)
	stop := context.AfterFunc(ctx, func() {
		shut(conn)
		shut(server)
	})
	defer stop()
	var passing sync.WaitGroup
	pass := func(from, to net.Conn) {
		defer shut(from)
		defer shut(to)
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if !b.through(ctx) {
				return
			}
			if n > 0 {
				if _, err := to.Write(buffer[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	passing.Go(func() { pass(conn, server) })
	passing.Go(func() { pass(server, conn) })
	passing.Wait()
}
