// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// occupant is an object in the namespace that this runner's object owns.
type occupant struct {
	kind Kind
	obj  *unstructured.Unstructured
	view protocol.Object
}

// occupants lists the objects in the namespace in conn's peer.
func (cl caller) occupants(ctx context.Context, conn *region.Conn) ([]occupant, error) {
	var found []occupant
	for _, resource := range cl.r.kind.Holds {
		kind := cl.r.executor.kinds.of(resource)
		list, err := conn.Dynamic().Resource(resource).Namespace(cl.r.key.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			view, _, err := kind.view(&list.Items[i])
			if err != nil {
				return nil, err
			}
			found = append(found, occupant{kind: kind, obj: &list.Items[i], view: view})
		}
	}
	return found, nil
}

func (o occupant) as(peer region.PeerName, stage protocol.Stage) protocol.Occupant {
	return protocol.Occupant{
		Peer:      string(peer),
		Resource:  o.kind.Resource.GroupResource().String(),
		Namespace: o.obj.GetNamespace(),
		Name:      o.obj.GetName(),
		Stage:     stage,
		Guard:     o.view.Claimed && !o.view.Primary(protocol.Mode(o.kind.Mode)),
	}
}

func (cl caller) list(ctx context.Context, conn *region.Conn) (protocol.Reply, error) {
	found, err := cl.occupants(ctx, conn)
	reply := protocol.Reply{Class: protocol.Applied, Code: classifyRead(err)}
	for _, o := range found {
		reply.Occupants = append(reply.Occupants, o.as(conn.Peer(), o.view.Stage))
	}
	return reply, err
}

// sweepNamespace sweeps every Reserved object in the namespace, which deletes the leftovers among
// them, and replies with the objects that remain. The stage in the reply is that of the object, or
// for a Reserved object the stage of its primary if the sweep found the primary.
func (cl caller) sweepNamespace(ctx context.Context, conn *region.Conn) (protocol.Reply, error) {
	found, err := cl.occupants(ctx, conn)
	reply := protocol.Reply{Class: protocol.Applied, Code: classifyRead(err)}
	if err != nil {
		return reply, err
	}
	for _, o := range found {
		stage := o.view.Stage
		if stage == protocol.Reserved {
			result, err := cl.r.executor.sweepOne(ctx, o.kind, conn.Peer(), o.obj, o.view, false)
			if err != nil {
				return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Unavailable}, err
			}
			if result.Removed {
				continue
			}
			if result.Holder.Claimed {
				stage = result.Holder.Stage
			}
		}
		reply.Occupants = append(reply.Occupants, o.as(conn.Peer(), stage))
	}
	return reply, nil
}
