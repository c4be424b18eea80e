// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
)

// clusters connects to the clusters of the peers, checks that each cluster is the one that the
// ring knows, and reads the PeerSets.
type clusters struct {
	opts       *Options
	directory  region.Directory
	sets       *setReader
	identities *identities
	reach      reach
}

// peers returns the names of the directory's peers. It waits until the directory has a peer, and
// returns an error if ctx ends first.
func (cs *clusters) peers(ctx context.Context) ([]string, error) {
	for snapshot := range cs.directory.Watch(ctx) {
		var names []string
		for p := range snapshot.Peers() {
			names = append(names, string(p.Name))
		}
		if len(names) > 0 {
			return names, nil
		}
	}
	return nil, fmt.Errorf("%w: the directory had none before the context ended: %w", region.ErrNoPeers, context.Cause(ctx))
}

// nearest returns the default peer for the primary of an object that exists everywhere: the
// first peer that is not unhealthy, or the first peer if all are.
func (cs *clusters) nearest(peers []string) string {
	for _, p := range peers {
		conn, err := cs.directory.Conn(region.PeerName(p))
		if err == nil && conn.Health().State != region.Unhealthy {
			return p
		}
	}
	return peers[0]
}

// distinct returns err if two peers are one cluster. silent has the errors of the peers whose
// identity could not be read: the operation itself fails at such a peer.
func (cs *clusters) distinct(ctx context.Context) (silent, err error) {
	ctx, cancel := context.WithTimeout(ctx, cs.opts.CallTimeout)
	defer cancel()
	uids, _ := region.Each(ctx, cs.directory, "read identity", region.BestEffort(), func(ctx context.Context, conn *region.Conn) (types.UID, error) {
		uid, err := conn.UID(ctx)
		return uid, explain(conn.Peer(), "read identity", err)
	})
	first := map[types.UID]region.PeerName{}
	for o := range uids.All() {
		if o.Err != nil {
			continue
		}
		if other, ok := first[o.Value]; ok {
			return nil, sameCluster(other, o.Peer, o.Value)
		}
		first[o.Value] = o.Peer
	}
	return uids.Err(), nil
}
