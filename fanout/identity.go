// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// place is a cluster under the name of a peer.
type place struct {
	peer    region.PeerName
	cluster types.UID
}

// recognize refuses a peer whose credentials lead to a cluster that is not the
// peer: what another cluster holds, or does not hold, says nothing about this
// one, and a primary that seems to be gone would make healthy guards seem dead.
// A cluster is asked once.
func (c *Coordinator) recognize(ctx context.Context, conn *region.Conn) error {
	uid, err := conn.UID(ctx)
	if err != nil {
		return err
	}
	at := place{conn.Peer(), uid}
	c.mu.Lock()
	met := c.met[at]
	c.mu.Unlock()
	if met {
		return nil
	}
	set, err := c.sets.read(ctx, conn)
	switch {
	case isAbsent(err):
		return fmt.Errorf("%w: peer %s has no PeerSet", ErrMembership, conn.Peer())
	case err != nil:
		return err
	}
	if err := calledItself(set.PeerSet, conn.Peer()); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.met[at] = true
	return nil
}

// calledItself refuses a cluster whose PeerSet has another name for it.
func calledItself(set *v1alpha1.PeerSet, peer region.PeerName) error {
	if name := set.Spec.Self.Peer; name != string(peer) {
		return fmt.Errorf("%w: the cluster behind peer %s calls itself %s: correct the peer's credentials", ErrWrongPeer, peer, name)
	}
	return nil
}
