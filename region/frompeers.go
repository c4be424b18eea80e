// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import "context"

// FromPeers makes a Source of constant peers. It rejects the same input as NewSnapshot, and a peer without credentials.
func FromPeers(peers ...Peer) (Source, error) {
	s, err := NewSnapshot(peers...)
	if err != nil {
		return nil, err
	}
	for p := range s.Peers() {
		if err := p.Credentials.check(); err != nil {
			return nil, &Error{Peer: p.Name, Op: "configure", Err: err}
		}
	}
	return constant{s}, nil
}

type constant struct{ snapshot *Snapshot }

// Run publishes the peers once.
func (c constant) Run(ctx context.Context, publish func(*Snapshot)) error {
	publish(c.snapshot)
	<-ctx.Done()
	return nil
}
