// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"fmt"
	"iter"
)

// Directory is the view of the peers that router, fanout and account need. *Ring implements it; Fixed makes one from
// existing connections. It is safe for concurrent use; no method does I/O.
type Directory interface {
	// Snapshot returns the current view, never nil. It is empty before the first Snapshot is published.
	Snapshot() *Snapshot
	// Watch yields the current Snapshot, as soon as there is one, then the newest after each change, until ctx ends.
	Watch(ctx context.Context) iter.Seq[*Snapshot]
	// Conn returns the connection to a peer, or an error such as ErrUnknownPeer. It does not check that the peer is
	// reachable.
	Conn(name PeerName) (*Conn, error)
}

// Fixed makes a Directory of existing connections. If one of them is nil, or two have the same name or serve the same
// region, the Directory is empty and every call of Conn returns an error with the reason.
func Fixed(conns ...*Conn) Directory {
	d := &fixed{conns: make(map[PeerName]*Conn, len(conns))}
	peers := make([]Peer, 0, len(conns))
	for i, c := range conns {
		if c == nil {
			d.snapshot, d.conns, d.err = emptySnapshot(), nil, fmt.Errorf("fixed: connection %d is nil", i)
			return d
		}
		d.conns[c.peer.Name] = c
		peers = append(peers, *c.peer)
	}
	d.snapshot, d.err = NewSnapshot(peers...)
	if d.err != nil {
		d.snapshot, d.conns = emptySnapshot(), nil
	}
	return d
}

func emptySnapshot() *Snapshot { return &Snapshot{} }

type fixed struct {
	snapshot *Snapshot
	conns    map[PeerName]*Conn
	err      error
}

func (d *fixed) Snapshot() *Snapshot { return d.snapshot }

func (d *fixed) Watch(ctx context.Context) iter.Seq[*Snapshot] {
	return func(yield func(*Snapshot) bool) {
		if ctx.Err() == nil && yield(d.snapshot) {
			<-ctx.Done()
		}
	}
}

func (d *fixed) Conn(name PeerName) (*Conn, error) {
	if d.err != nil {
		return nil, d.err
	}
	c, ok := d.conns[name]
	if !ok {
		return nil, &Error{Peer: name, Op: "connect", Err: ErrUnknownPeer}
	}
	return c, nil
}
