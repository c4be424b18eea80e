// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/atoll-dev/atoll/region"
)

var _ region.Directory = (*Ring)(nil)

// Ring is a region.Directory of servers in memory. Each server has a kube-system namespace with its own UID, so the
// servers are different clusters for every client. A Ring does not probe its connections, so their health stays
// Unknown. It is safe for concurrent use.
type Ring struct {
	mu       sync.Mutex
	servers  map[region.PeerName]*Server
	members  map[region.PeerName]*region.Conn
	regions  map[region.PeerName][]region.Key
	snapshot *region.Snapshot
	changed  chan struct{} // closed and replaced by each change
}

// NewRing makes a server and a connection for each name. It starts no goroutine. It panics on a name that is not a
// DNS-1123 subdomain or is duplicate.
func NewRing(names ...region.PeerName) *Ring {
	r := &Ring{
		servers: map[region.PeerName]*Server{}, members: map[region.PeerName]*region.Conn{},
		regions: map[region.PeerName][]region.Key{}, changed: make(chan struct{}),
	}
	for _, name := range names {
		if r.servers[name] != nil {
			panic(fmt.Sprintf("regiontest: NewRing: peer %s is given twice", name))
		}
		if err := r.Join(name, NewServer(Options{Name: string(name)})); err != nil {
			panic(fmt.Sprintf("regiontest: NewRing: %v", err))
		}
	}
	if len(names) == 0 {
		r.snapshot = must(region.NewSnapshot())
	}
	return r
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Close closes all servers.
func (r *Ring) Close() {
	r.mu.Lock()
	servers := slices.Collect(maps.Values(r.servers))
	r.mu.Unlock()
	for _, s := range servers {
		s.Close()
	}
}

// Server returns the server of a peer, even after the peer has left, or nil if no peer of this name has ever joined.
func (r *Ring) Server(name region.PeerName) *Server {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.servers[name]
}

// Partition makes a peer unreachable, or reachable again. The peer stays in the Directory. Partition panics on a name
// that never was in the ring.
func (r *Ring) Partition(name region.PeerName, cut bool) {
	s := r.Server(name)
	if s == nil {
		panic(fmt.Sprintf("regiontest: Ring.Partition: no peer %s", name))
	}
	s.Partition(cut)
}

// AddCRDs creates or replaces CRDs in all servers. Schemas and rules are compiled once for all of them.
func (r *Ring) AddCRDs(crds ...*apiextensionsv1.CustomResourceDefinition) error {
	r.mu.Lock()
	servers := maps.Clone(r.servers)
	r.mu.Unlock()
	var first *Server
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		s := servers[name]
		if first == nil {
			first = s
		}
		for _, crd := range crds {
			if s != first && s.shareCRD(first, crd) {
				continue
			}
			if err := s.AddCRD(crd); err != nil {
				return &region.Error{Peer: name, Op: "create CRD " + crd.Name, Err: err}
			}
		}
	}
	return nil
}

// Join adds s as a peer, or replaces the peer of this name, and publishes a new Snapshot.
func (r *Ring) Join(name region.PeerName, s *Server) error {
	creds, err := region.FromConfig(s.Config())
	if err != nil {
		return err
	}
	conn, err := region.NewConn(region.Peer{Name: name, Credentials: creds}, region.ConnOptions{})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers[name], r.members[name] = s, conn
	return r.publish()
}

// Leave removes a peer from the Directory and publishes a new Snapshot. Its server keeps running.
func (r *Ring) Leave(name region.PeerName) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.members, name)
	delete(r.regions, name)
	return r.publish()
}

// Serve sets the regions of a peer to keys and publishes a new Snapshot. It returns an error, and changes nothing, if
// another peer serves one of keys or if the peer is not in the ring.
func (r *Ring) Serve(name region.PeerName, keys ...region.Key) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.members[name] == nil {
		return &region.Error{Peer: name, Op: "serve regions", Err: region.ErrUnknownPeer}
	}
	before := r.regions[name]
	r.regions[name] = slices.Clone(keys)
	err := r.publish()
	if err != nil {
		r.regions[name] = before
	}
	return err
}

// publish makes the Snapshot of the current members and wakes the calls of Watch. The caller holds the lock.
func (r *Ring) publish() error {
	var peers []region.Peer
	for _, name := range slices.Sorted(maps.Keys(r.members)) {
		creds, err := region.FromConfig(r.servers[name].Config())
		if err != nil {
			return err
		}
		peers = append(peers, region.Peer{Name: name, Regions: r.regions[name], Credentials: creds})
	}
	snapshot, err := region.NewSnapshot(peers...)
	if err != nil {
		return err
	}
	r.snapshot = snapshot
	close(r.changed)
	r.changed = make(chan struct{})
	return nil
}

// Snapshot returns the current Snapshot.
func (r *Ring) Snapshot() *region.Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.snapshot
}

// Watch yields the current Snapshot, then the newest after each change, until ctx ends.
func (r *Ring) Watch(ctx context.Context) iter.Seq[*region.Snapshot] {
	return func(yield func(*region.Snapshot) bool) {
		for ctx.Err() == nil {
			r.mu.Lock()
			snapshot, changed := r.snapshot, r.changed
			r.mu.Unlock()
			if !yield(snapshot) {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

// Conn returns the connection to a peer, or region.ErrUnknownPeer.
func (r *Ring) Conn(name region.PeerName) (*region.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.members[name]; c != nil {
		return c, nil
	}
	return nil, &region.Error{Peer: name, Op: "connect", Err: region.ErrUnknownPeer}
}
