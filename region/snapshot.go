// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
)

// generations numbers the snapshots of this process.
var generations atomic.Uint64

// Snapshot is an immutable view of all peers. It is safe for concurrent use; look-ups take no lock and do not allocate.
type Snapshot struct {
	generation uint64
	peers      []*Peer // by name
	byName     map[PeerName]*Peer
	regions    []Key // by provider, then name
	byRegion   map[Key]*Peer
}

// NewSnapshot copies, sorts and checks peers. It rejects invalid names, a duplicate peer name, and a region that two
// peers serve; the error names both peers. It does not check credentials.
func NewSnapshot(peers ...Peer) (*Snapshot, error) {
	s := &Snapshot{
		byName:   make(map[PeerName]*Peer, len(peers)),
		byRegion: make(map[Key]*Peer),
	}
	for i := range peers {
		p := peers[i].clone()
		if err := p.Name.Validate(); err != nil {
			return nil, err
		}
		if _, ok := s.byName[p.Name]; ok {
			return nil, fmt.Errorf("peer %q is listed twice", p.Name)
		}
		s.byName[p.Name] = p
		s.peers = append(s.peers, p)
	}
	slices.SortFunc(s.peers, func(a, b *Peer) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range s.peers {
		for _, k := range p.Regions {
			if err := k.Validate(); err != nil {
				return nil, fmt.Errorf("peer %q: %w", p.Name, err)
			}
			if q, ok := s.byRegion[k]; ok {
				return nil, fmt.Errorf("region %q is served by peer %q and by peer %q; one peer serves a region", k, q.Name, p.Name)
			}
			s.byRegion[k] = p
			s.regions = append(s.regions, k)
		}
	}
	slices.SortFunc(s.regions, Key.Compare)
	s.generation = generations.Add(1)
	return s, nil
}

// Generation increases with every Snapshot that this process makes. It cannot be compared between processes.
func (s *Snapshot) Generation() uint64 { return s.generation }

// Peer returns the peer with this name. The result must not be modified.
func (s *Snapshot) Peer(name PeerName) (*Peer, bool) {
	p, ok := s.byName[name]
	return p, ok
}

// Locate returns the peer that serves k. The result must not be modified.
func (s *Snapshot) Locate(k Key) (*Peer, bool) {
	p, ok := s.byRegion[k]
	return p, ok
}

// Len is the number of peers.
func (s *Snapshot) Len() int { return len(s.peers) }

// Peers yields all peers by name.
func (s *Snapshot) Peers() iter.Seq[*Peer] { return slices.Values(s.peers) }

// Regions yields all regions with the peer that serves each, by provider, then name.
func (s *Snapshot) Regions() iter.Seq2[Key, *Peer] {
	return func(yield func(Key, *Peer) bool) {
		for _, k := range s.regions {
			if !yield(k, s.byRegion[k]) {
				return
			}
		}
	}
}

// equal reports whether both snapshots list the same peers, whatever their generation.
func (s *Snapshot) equal(o *Snapshot) bool {
	return slices.EqualFunc(s.peers, o.peers, (*Peer).equal)
}
