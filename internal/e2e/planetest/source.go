// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package planetest

import (
	"context"
	"sync"

	"github.com/atoll-dev/atoll/region"
)

// Source is a region.Source whose peers a test changes.
type Source struct {
	mu      sync.Mutex
	peers   map[region.PeerName]region.Peer
	changed chan struct{}
	asked   chan struct{} // holds a value after a peer rejected its credentials
}

// NewSource returns a Source of peers.
func NewSource(peers ...region.Peer) *Source {
	s := &Source{peers: map[region.PeerName]region.Peer{}, changed: make(chan struct{}, 1), asked: make(chan struct{}, 1)}
	for _, p := range peers {
		s.Put(p)
	}
	return s
}

// Put adds or replaces a peer.
func (s *Source) Put(p region.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers[p.Name] = p
	s.change()
}

// Remove removes a peer.
func (s *Source) Remove(name region.PeerName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.peers, name)
	s.change()
}

func (s *Source) change() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Run publishes the peers, and publishes them again after each change, until ctx ends.
func (s *Source) Run(ctx context.Context, publish func(*region.Snapshot)) error {
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
func (s *Source) Refresh() {
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// Asked receives a value after Refresh.
func (s *Source) Asked() <-chan struct{} { return s.asked }
