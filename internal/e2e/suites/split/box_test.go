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

// box is a network between the process and one API server. The network can be cut. Data sent while
// it is cut is lost without an error. The affected connections are closed when the network is
// restored.
type box struct {
	to string

	mu    sync.Mutex
	whole chan struct{} // closed while the network works
}

// newBox returns a box in front of a server, and the box's URL.
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

// through returns true if the network works. Otherwise it waits until the network works or ctx
// ends, and returns false.
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

// serve copies one connection in both directions until either end closes it.
func (b *box) serve(ctx context.Context, conn net.Conn) {
	shut := func(c net.Conn) { _ = c.Close() } // either end may be closed already
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
