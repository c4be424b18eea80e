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

// source is a region.Source whose peers' credentials can be replaced.
type source struct {
	mu      sync.Mutex
	peers   map[region.PeerName]region.Peer
	changed chan struct{}
	asked   chan struct{} // holds a value after a peer rejected its credentials
}

func newSource(peers ...region.Peer) *source {
	s := &source{peers: map[region.PeerName]region.Peer{}, changed: make(chan struct{}, 1), asked: make(chan struct{}, 1)}
	for _, p := range peers {
		s.put(p)
	}
	return s
}

// put adds or replaces a peer.
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

// Refresh records that a peer rejects its credentials.
func (s *source) Refresh() {
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// start runs a blocking function until the test ends.
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
