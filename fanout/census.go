// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// census counts, once per peer, the homes of a kind, and those of them that a plain delete wants to
// remove and no person has released. All objects of one sweep (a check and repair of all peers)
// share it.
type census struct {
	executor *executor
	kind     Kind

	mu    sync.Mutex
	peers map[region.PeerName]*count
}

type count struct {
	turn     chan struct{} // holds one element while a goroutine counts
	done     bool
	requests protocol.Requests
}

func newCensus(c *executor, kind Kind) *census {
	return &census{executor: c, kind: kind, peers: map[region.PeerName]*count{}}
}

// of returns the count for conn's peer. The first caller counts the primaries; later callers wait
// for that count and reuse it. If counting fails, the next caller counts.
func (s *census) of(ctx context.Context, conn *region.Conn) (*count, error) {
	s.mu.Lock()
	n := s.peers[conn.Peer()]
	if n == nil {
		n = &count{turn: make(chan struct{}, 1)}
		s.peers[conn.Peer()] = n
	}
	s.mu.Unlock()
	select {
	case n.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-n.turn }()
	if n.done {
		return n, nil
	}
	requests, err := s.take(ctx, conn)
	if err != nil {
		return nil, err
	}
	n.done, n.requests = true, requests
	return n, nil
}

func (s *census) take(ctx context.Context, conn *region.Conn) (total protocol.Requests, err error) {
	opts := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := within(ctx, s.executor.opts.CallTimeout, func(ctx context.Context) (*unstructured.UnstructuredList, error) {
			return conn.Dynamic().Resource(s.kind.Resource).List(ctx, opts)
		})
		if err != nil {
			return total, err
		}
		for i := range list.Items {
			view, _, err := s.kind.view(&list.Items[i])
			if err != nil || !view.Primary(protocol.Mode(s.kind.Mode)) || !view.InEffect() && !view.Leaving() {
				continue
			}
			total.Homes++
			if view.Requested() && !view.Released {
				total.Requested++
			}
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return total, nil
		}
	}
}

// count replies with the counts of conn's peer, and with whether the removal of the command's
// object was requested less than RemovalCap.Within ago.
func (cl caller) count(ctx context.Context, conn *region.Conn, command protocol.Command) (protocol.Reply, error) {
	n, err := cl.r.census.of(ctx, conn)
	reply := protocol.Reply{Class: protocol.Applied, Code: classifyRead(err)}
	if err != nil {
		return reply, err
	}
	reply.Requests = n.requests
	if obj, _, ok := cl.r.memory.recall(command.Object.UID, command.Object.RV); ok && obj.GetDeletionTimestamp() != nil {
		reply.Requests.Settling = cl.r.executor.opts.RemovalCap.Settling(obj.GetDeletionTimestamp().Time, time.Now()) > 0
	}
	return reply, nil
}
