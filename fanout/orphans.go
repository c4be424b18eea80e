// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// orphans returns violations for the committed objects of s whose namespaces have no owner.
func (n *inspector) orphans(ctx context.Context, s, owners survey) []Violation {
	var found []Violation
	for _, key := range s.keys() {
		for _, peer := range slices.Sorted(maps.Keys(s.late[key])) {
			m := s.late[key][peer]
			if m.bad != nil || !m.view.Primary(protocol.Mode(s.kind.Mode)) || !m.view.InEffect() || owners.unread[peer] != nil {
				continue
			}
			if _, owned := owners.late[types.NamespacedName{Name: key.Namespace}][peer]; owned {
				continue
			}
			if !n.orphan(ctx, s, peer, m) {
				continue
			}
			found = append(found, finding{Violation: Violation{
				Invariant: "owner",
				Peer:      region.PeerName(peer),
				Kind:      s.kind.GroupKind(),
				Key:       key,
				UID:       m.obj.GetUID(),
				Text:      fmt.Sprintf("it is committed and no peer has %s %s", owners.kind.Kind, key.Namespace),
			}}.withClassAndCommand().Violation)
		}
	}
	return found
}

// orphan confirms by further reads that the committed object m has no owner: no peer has the owner,
// and a later read shows that m is still committed. The order matters, because a removal of the
// owner deletes the owner's primary only after the objects in the owner's namespace.
func (n *inspector) orphan(ctx context.Context, s survey, peer string, m met) bool {
	for _, p := range s.peers {
		_, err := n.get(ctx, region.PeerName(p), s.kind.Within, types.NamespacedName{Name: m.obj.GetNamespace()})
		if !isAbsent(err) {
			return false
		}
	}
	obj, err := n.get(ctx, region.PeerName(peer), s.kind.Resource, objectKey(m.obj))
	if err != nil {
		return false
	}
	view, _, err := s.kind.view(obj)
	return err == nil && view.UID == m.view.UID && view.InEffect()
}

func (n *inspector) get(ctx context.Context, peer region.PeerName, resource schema.GroupVersionResource, key types.NamespacedName) (*unstructured.Unstructured, error) {
	conn, err := n.clusters.trusted(ctx, peer)
	if err != nil {
		return nil, err
	}
	return within(ctx, n.opts.CallTimeout, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return conn.Dynamic().Resource(resource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	})
}
