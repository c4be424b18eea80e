// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// balancer does what a Service does: it forwards connections to the replicas that are ready, by their probes.
type balancer struct {
	listener net.Listener
	replicas []*replica
	work     sync.WaitGroup

	mu    sync.Mutex
	ready []bool
	next  int
}

// newBalancer starts a balancer that ends with the test.
func newBalancer(t *testing.T, replicas ...*replica) *balancer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &balancer{listener: listener, replicas: replicas, ready: make([]bool, len(replicas))}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	b.probe(ctx)
	b.work.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				b.probe(ctx)
			}
		}
	})
	b.work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			b.work.Go(func() { b.forward(ctx, conn) })
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		b.work.Wait()
	})
	return b
}

func (b *balancer) address() string { return "https://" + b.listener.Addr().String() }

func (b *balancer) probe(ctx context.Context) {
	for i, r := range b.replicas {
		ready := r.ready(ctx) == nil
		b.mu.Lock()
		b.ready[i] = ready
		b.mu.Unlock()
	}
}

// choose returns the address of a ready replica, in turn, or "".
func (b *balancer) choose() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.replicas {
		b.next = (b.next + 1) % len(b.replicas)
		if b.ready[b.next] {
			address, _ := b.replicas[b.next].at()
			return address
		}
	}
	return ""
}

func (b *balancer) forward(ctx context.Context, client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := new(net.Dialer).DialContext(ctx, "tcp", b.choose())
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	defer context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], way[0])
			_ = way[1].(*net.TCPConn).CloseWrite()
		})
	}
	both.Wait()
}
