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
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// orphans are committed objects of s in namespaces that nobody owns.
func (c *Coordinator) orphans(ctx context.Context, s, owners survey) []Violation {
	var found []Violation
	for _, key := range s.keys() {
		for _, peer := range slices.Sorted(maps.Keys(s.late[key])) {
			m := s.late[key][peer]
			if m.bad != nil || !m.view.Primary(protocol.Mode(s.kind.Mode)) || !m.view.Committed() || owners.unread[peer] != nil {
				continue
			}
			if _, owned := owners.late[types.NamespacedName{Name: key.Namespace}][peer]; owned {
				continue
			}
			if !c.orphan(ctx, s.kind, region.PeerName(peer), m) {
				continue
			}
			found = append(found, Violation{
				Invariant: "owner",
				Peer:      region.PeerName(peer),
				Kind:      s.kind.GroupKind(),
				Key:       key,
				UID:       m.obj.GetUID(),
				Text:      fmt.Sprintf("it is committed and no %s %s is here", owners.kind.Kind, key.Namespace),
			})
		}
	}
	return found
}

// orphan confirms it by two reads: the owner is not there, and afterwards the
// object, which had been committed before, still is.
func (c *Coordinator) orphan(ctx context.Context, kind Kind, peer region.PeerName, m met) bool {
	conn, err := c.directory.Conn(peer)
	if err != nil {
		return false
	}
	_, err = within(ctx, c.opts.CallTimeout, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return conn.Dynamic().Resource(kind.Within).Get(ctx, m.obj.GetNamespace(), metav1.GetOptions{})
	})
	if !isAbsent(err) {
		return false
	}
	obj, err := within(ctx, c.opts.CallTimeout, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return conn.Dynamic().Resource(kind.Resource).Namespace(m.obj.GetNamespace()).Get(ctx, m.obj.GetName(), metav1.GetOptions{})
	})
	if err != nil {
		return false
	}
	view, _, err := kind.view(obj)
	return err == nil && view.UID == m.view.UID && view.Committed()
}
