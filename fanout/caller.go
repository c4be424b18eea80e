// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// A caller sends to the peers the commands of a runner's state machine.
type caller struct{ r *runner }

// ask sends a command to a peer.
func (cl caller) ask(ctx context.Context, attempt *region.Attempt, conn *region.Conn, command protocol.Command) (protocol.Reply, error) {
	switch command.Verb {
	case protocol.Create, protocol.Put, protocol.Delete:
		return cl.write(ctx, attempt, conn, command)
	case protocol.Read:
		return cl.read(ctx, conn)
	case protocol.ReadPeerSet:
		return cl.readPeerSet(ctx, conn)
	case protocol.ReadOwner:
		return cl.readOwner(ctx, conn)
	case protocol.List:
		return cl.list(ctx, conn)
	case protocol.Settle:
		return cl.sweepNamespace(ctx, conn)
	case protocol.Count:
		return cl.count(ctx, conn, command)
	case protocol.Activate, protocol.Release:
		return cl.callHook(ctx, conn, command)
	default:
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Denied}, fmt.Errorf("unknown command %q", command.Verb)
	}
}

func (cl caller) resource(conn *region.Conn) dynamic.ResourceInterface {
	return cl.r.kind.in(conn, cl.r.key.Namespace)
}

// write sends one conditional write and reports whether it was applied.
func (cl caller) write(ctx context.Context, attempt *region.Attempt, conn *region.Conn, command protocol.Command) (protocol.Reply, error) {
	obj, err := cl.body(command)
	if err != nil {
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Denied}, err
	}
	var got *unstructured.Unstructured
	client := cl.resource(conn)
	switch command.Verb {
	case protocol.Create:
		got, err = client.Create(ctx, obj, metav1.CreateOptions{FieldManager: fieldManager, DryRun: cl.r.planner().dryRun()})
	case protocol.Put:
		got, err = client.Update(ctx, obj, metav1.UpdateOptions{FieldManager: fieldManager})
	default:
		uid := types.UID(command.UID)
		err = client.Delete(ctx, cl.r.key.Name, metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &command.RV},
			PropagationPolicy: &background,
		})
	}
	class, code := classify(attempt, err)
	if command.Verb == protocol.Create && code == protocol.NotFound {
		// The namespace is missing, not the object.
		code = protocol.Denied
	}
	reply := protocol.Reply{Class: class, Code: code}
	switch {
	case !cl.isGuard(command.Object):
	case err != nil:
		err = cl.guardRefused(conn.Peer(), command, err)
	case command.Verb == protocol.Create:
		cl.r.executor.guards.taken(ctx, conn, cl.r.kind)
	}
	if err == nil && got != nil {
		if reply.Object, err = cl.r.memory.remember(got); err != nil {
			return protocol.Reply{Class: protocol.Unknown, Code: protocol.Unavailable}, err
		}
	}
	return reply, err
}

// body returns the object that a write sends, or nil for a delete.
func (cl caller) body(command protocol.Command) (*unstructured.Unstructured, error) {
	switch command.Verb {
	case protocol.Create:
		// A reservation of a kind with Inert has no content of its own: Kind.Inert makes it from
		// the content that the object gets later.
		token := command.Object.Payload
		if cl.r.kind.Inert != nil && token == "" && !cl.isGuard(command.Object) {
			token = cl.inertToken(command.Object)
		}
		c, err := cl.r.memory.content(token)
		if err != nil {
			return nil, err
		}
		return cl.r.kind.newObject(cl.r.key, command.Object, c)
	case protocol.Put:
		return cl.changed(command)
	default:
		return nil, nil
	}
}

// guardRefused adds the remedy to the error of a peer that rejected a guard.
func (cl caller) guardRefused(peer region.PeerName, command protocol.Command, err error) error {
	if _, was, _ := cl.r.memory.recall(command.UID, command.RV); command.Verb == protocol.Put && was.Payload != command.Object.Payload {
		return scrubRefused(err)
	}
	if command.Verb != protocol.Create {
		return err
	}
	refused := cl.r.kind.guardRefused(err)
	if _, ok := errors.AsType[*GuardError](refused); ok {
		cl.r.executor.guards.refused(peer, cl.r.kind.GroupKind())
	}
	return refused
}

func (cl caller) isGuard(o protocol.Object) bool { return o.Guard(protocol.Mode(cl.r.kind.Mode)) }

// inertToken returns the token (the hash) of the content from which Kind.Inert makes a reservation.
// For a reservation of the runner's own operation this is the content of the request. For an
// adoption, and for a reservation of another operation, it is the content of the primary whose
// replica the reservation becomes.
func (cl caller) inertToken(o protocol.Object) string {
	if o.Claim.Operation == cl.r.journal.Operation.ID && cl.r.journal.Operation.Action != protocol.Adopt {
		return cl.r.requestToken
	}
	return cl.r.memory.payload(o.Claim.Of.UID)
}

// changed returns the object that a put (an update) sends: the object as the runner read it, with
// the command's changes. It returns an error if the runner never read that object.
func (cl caller) changed(command protocol.Command) (*unstructured.Unstructured, error) {
	base, was, ok := cl.r.memory.recall(command.UID, command.RV)
	if !ok {
		return nil, fmt.Errorf("put on %s at resource version %s, which was never read", command.UID, command.RV)
	}
	var c content
	var err error
	if was.Payload != command.Object.Payload {
		if c, err = cl.r.memory.content(command.Object.Payload); err != nil {
			return nil, err
		}
	}
	obj, err := cl.r.kind.changed(base, was, command.Object, c, cl.r.executor.opts.Identity, time.Now())
	if err != nil {
		return nil, err
	}
	if was.Stage == protocol.Reserved && command.Object.Stage != protocol.Reserved && command.Object.Claim.Primary {
		handOver(obj, cl.r.kind, cl.r.journal.FieldManager, time.Now())
	}
	return obj, nil
}

func (cl caller) read(ctx context.Context, conn *region.Conn) (protocol.Reply, error) {
	if err := cl.r.executor.clusters.recognize(ctx, conn); err != nil {
		return untrusted(err), err
	}
	obj, err := cl.resource(conn).Get(ctx, cl.r.key.Name, metav1.GetOptions{})
	reply := protocol.Reply{Class: protocol.Applied, Code: classifyRead(err)}
	if err != nil {
		if reply.Code == protocol.NotFound {
			err = nil
		}
		return reply, err
	}
	if reply.Object, err = cl.r.memory.remember(obj); err != nil {
		reply.Code = protocol.Denied
	}
	return reply, err
}

func (cl caller) readPeerSet(ctx context.Context, conn *region.Conn) (protocol.Reply, error) {
	set, err := cl.r.executor.clusters.readSet(ctx, conn)
	reply := protocol.Reply{Class: protocol.Applied, Code: classifyRead(err)}
	if err == nil {
		reply.PeerSet = set.view
	}
	return reply, err
}

func (cl caller) readOwner(ctx context.Context, conn *region.Conn) (protocol.Reply, error) {
	owner := cl.r.executor.kinds.of(cl.r.kind.Within)
	obj, err := conn.Dynamic().Resource(cl.r.kind.Within).Get(ctx, cl.r.key.Namespace, metav1.GetOptions{})
	reply := protocol.Reply{Class: protocol.Applied, Code: classifyRead(err)}
	if err != nil {
		if reply.Code == protocol.NotFound {
			err = nil
		}
		return reply, err
	}
	if reply.Object, _, err = owner.view(obj); err != nil {
		reply.Code = protocol.Denied
	}
	return reply, err
}

// callHook calls Kind.Activated or Kind.Released with the object that the runner read.
func (cl caller) callHook(ctx context.Context, conn *region.Conn, command protocol.Command) (protocol.Reply, error) {
	hook := cl.r.kind.Activated
	if command.Verb == protocol.Release {
		hook = cl.r.kind.Released
	}
	done := protocol.Reply{Class: protocol.Applied, Code: protocol.OK}
	if hook == nil {
		return done, nil
	}
	obj, _, ok := cl.r.memory.recall(command.Object.UID, command.Object.RV)
	if !ok {
		return protocol.Reply{Code: protocol.Unavailable}, errors.New("the object was never read")
	}
	if err := hook(ctx, conn, obj.DeepCopy()); err != nil {
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Unavailable}, fmt.Errorf("%s hook: %w", command.Verb, err)
	}
	return done, nil
}
