// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// lookAt surveys one name: it reads the name twice in all peers.
func (v *surveyor) lookAt(ctx context.Context, kind Kind, key types.NamespacedName, peers []string) survey {
	return v.lookTwice(kind, peers, func(peer region.PeerName) ([]unstructured.Unstructured, protocol.PeerSet, error) {
		return v.readPeer(ctx, kind, key, peer)
	})
}

// readPeer reads the PeerSet in peer, and then the object with the given name, if there is one. It
// returns an error if the cluster behind peer is the wrong one.
func (v *surveyor) readPeer(ctx context.Context, kind Kind, key types.NamespacedName, peer region.PeerName) ([]unstructured.Unstructured, protocol.PeerSet, error) {
	conn, err := v.clusters.directory.Conn(peer)
	if err != nil {
		return nil, protocol.PeerSet{}, explain(peer, "connect", err)
	}
	set, err := within(ctx, v.opts.CallTimeout, func(ctx context.Context) (*readSet, error) { return v.clusters.readSet(ctx, conn) })
	if err != nil {
		return nil, protocol.PeerSet{}, explain(peer, "read the PeerSet", err)
	}
	obj, err := within(ctx, v.opts.CallTimeout, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return kind.in(conn, key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	})
	switch {
	case isAbsent(err):
		return nil, set.view, nil
	case err != nil:
		return nil, protocol.PeerSet{}, explain(peer, operationName(protocol.Action(protocol.Read), kind, key), err)
	default:
		return []unstructured.Unstructured{*obj}, set.view, nil
	}
}

// glance reads one name once. A member that is not configured here counts as unread.
func (v *surveyor) glance(ctx context.Context, kind Kind, key types.NamespacedName, peers []string) survey {
	s := survey{kind: kind, unread: map[string]error{}, sets: map[string]protocol.PeerSet{}}
	s.early = s.gather(peers, func(peer region.PeerName) ([]unstructured.Unstructured, protocol.PeerSet, error) {
		return v.readPeer(ctx, kind, key, peer)
	})
	for _, set := range s.sets {
		for _, m := range set.Members {
			if !slices.Contains(peers, m.Peer) {
				s.unread[m.Peer] = fmt.Errorf("peer %s: %w: it is a member: configure it", m.Peer, region.ErrUnknownPeer)
			}
		}
	}
	return s
}
