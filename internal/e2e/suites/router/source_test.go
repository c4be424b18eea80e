// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
)

// source is a region.Source of peers whose credentials are replaced.
type source struct {
	mu      sync.Mutex
	peers   map[region.PeerName]region.Peer
	changed chan struct{}
	asked   chan struct{} // holds a value once a peer has refused its credentials
}

func newSource(peers ...region.Peer) *source {
	s := &source{peers: map[region.PeerName]region.Peer{}, changed: make(chan struct{}, 1), asked: make(chan struct{}, 1)}
	for _, p := range peers {
		s.put(p)
	}
	return s
}

// put adds a peer, or replaces it.
func (s *source) put(p region.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers[p.Name] = p
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *source) Run(ctx context.Context, publish func(*region.Snapshot)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		}
		s.mu.Lock()
		var peers []region.Peer
		for _, p := range s.peers {
			peers = append(peers, p)
		}
		s.mu.Unlock()
		snapshot, err := region.NewSnapshot(peers...)
		if err != nil {
			return err
		}
		publish(snapshot)
	}
}

// Refresh notes that a peer refuses its credentials.
func (s *source) Refresh() {
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// start runs what blocks until the test ends.
func start(t testing.TB, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
}
