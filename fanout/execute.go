// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// fieldManager owns the fields that the protocol writes.
const fieldManager = "atoll-fanout"

var (
	peerSets   = v1alpha1.GroupVersion.WithResource("peersets")
	background = metav1.DeletePropagationBackground
)

// execute runs one command and returns its reply.
func (r *runner) execute(ctx context.Context, command protocol.Command, write logWrite) protocol.Reply {
	if command.Verb == protocol.Sleep {
		return r.sleep(ctx)
	}
	event := StepEvent{
		Operation: r.operationID(),
		Action:    string(r.machine.Op.Action),
		Kind:      r.kind.GroupKind(),
		Key:       r.key,
		Peer:      region.PeerName(command.Peer),
		Verb:      string(command.Verb),
		Stage:     string(command.Object.Stage),
		Role:      roleOf(command),
	}
	observer := r.executor.opts.Observer
	if r.rehearsal != nil {
		observer = nil // a rehearsal changes nothing
	}
	observer.step(ctx, event)
	about := fmt.Sprintf("%s %s %s", stepOf(command.Verb), r.kind.Kind, keyString(r.key))
	call := r.troubles.begin(event.Peer, about, writes(command.Verb))
	reply, err := r.call(ctx, command, write)
	if event.Peer != "" { // empty for a command of the log
		err = explain(event.Peer, about, err)
	}
	if err == nil || !errors.Is(context.Cause(ctx), errWatched) {
		silent := reply.Code == protocol.Unavailable || reply.Code == protocol.NoSuchPeer
		r.troubles.end(ctx, call, err, silent, reply.Object.Claim.Operation == r.machine.Op.ID)
	}
	if held := r.observe(event.Peer, command, reply); held != nil && err == nil {
		event.Finalizers = held.Finalizers
	}
	event.Done, event.Code, event.Class, event.Err = true, string(reply.Code), reply.Class.String(), err
	observer.step(ctx, event)
	return reply
}

// call runs a command within the time limit of its peer.
func (r *runner) call(ctx context.Context, command protocol.Command, write logWrite) (protocol.Reply, error) {
	peer := region.PeerName(command.Peer)
	limit, err := r.executor.clusters.reach.begin(r.executor.clusters, peer)
	if err != nil {
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Unavailable}, err
	}
	call, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// No layer below repeats a request: the machine counts its own attempts.
	var attempt region.Attempt
	reply, err := r.perform(region.WithAttempt(call, &attempt), &attempt, command, write)
	r.executor.clusters.reach.end(peer, err != nil && call.Err() != nil && ctx.Err() == nil)
	if reply.Code == protocol.Unavailable || reply.Code == protocol.NoSuchPeer {
		r.executor.clusters.reach.heard(peer, err)
	}
	if reply.Code == protocol.Denied && apierrors.IsForbidden(err) && r.executor.clusters.reach.begins(peer) {
		reply.Code = protocol.Unavailable
	}
	return reply, err
}

// stepOf returns the name of a command in texts.
func stepOf(verb protocol.Verb) string {
	switch verb {
	case protocol.Put:
		return "update"
	case protocol.ReadPeerSet:
		return "read the PeerSet for"
	case protocol.PutPeerSet:
		return "write the PeerSet for"
	case protocol.ReadOwner:
		return "read the owner of"
	case protocol.List, protocol.Settle:
		return "list the objects within"
	default:
		return string(verb)
	}
}

// writes reports whether the command changes something.
func writes(verb protocol.Verb) bool {
	switch verb {
	case protocol.Create, protocol.Put, protocol.Delete, protocol.Activate, protocol.Release, protocol.PutPeerSet:
		return true
	default:
		return false
	}
}

func roleOf(command protocol.Command) string {
	switch {
	case !command.Object.Claimed:
		return ""
	case command.Object.Claim.Primary:
		return "primary"
	default:
		return "secondary"
	}
}

// operationID returns the ID that the log and the caller know. An attempt after giving way has
// another ID in its claims.
func (r *runner) operationID() string {
	if id := r.entry.present().ID; id != "" {
		return id
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.journal.Operation.ID
}

// sleep waits for one quantum, with jitter so that rivals fall out of step.
func (r *runner) sleep(ctx context.Context) protocol.Reply {
	quantum := r.executor.quantum()
	timer := time.NewTimer(quantum*3/4 + rand.N(quantum/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return protocol.Reply{Class: protocol.Applied, Code: protocol.OK}
}

func (r *runner) perform(ctx context.Context, attempt *region.Attempt, command protocol.Command, write logWrite) (protocol.Reply, error) {
	if r.rehearsal != nil {
		if reply, ok, err := r.rehearse(ctx, attempt, command); ok {
			return reply, err
		}
	}
	switch command.Verb {
	case protocol.ReadRecord, protocol.Withdraw:
		return r.onRecord(ctx, command, write)
	case protocol.Begin, protocol.Advance, protocol.Forget:
		return r.writeLog(ctx, command.Verb, write)
	}
	conn, err := r.executor.clusters.directory.Conn(region.PeerName(command.Peer))
	if err != nil {
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.NoSuchPeer}, err
	}
	if command.Verb != protocol.ReadPeerSet {
		if err := r.executor.clusters.trust(ctx, conn); err != nil {
			return untrusted(err), err
		}
	}
	reply, err := r.ask(ctx, attempt, conn, command)
	if command.Verb != protocol.ReadPeerSet && !writes(command.Verb) {
		// An answer of another peer may have shown meanwhile that this is the wrong cluster.
		if _, wrong := r.executor.clusters.identities.standing(conn); wrong != nil {
			return untrusted(wrong), wrong
		}
	}
	return reply, err
}

// untrusted returns the reply for a wrong cluster, which counts as an unreachable peer.
func untrusted(err error) protocol.Reply {
	code := classifyRead(err)
	if code == protocol.NotFound || code == protocol.OK {
		code = protocol.Denied
	}
	return protocol.Reply{Class: protocol.NotApplied, Code: code}
}

// ask sends a command to a peer.
func (r *runner) ask(ctx context.Context, attempt *region.Attempt, conn *region.Conn, command protocol.Command) (protocol.Reply, error) {
	switch command.Verb {
	case protocol.Create, protocol.Put, protocol.Delete:
		return r.write(ctx, attempt, conn, command)
	case protocol.Read:
		return r.read(ctx, conn)
	case protocol.ReadPeerSet:
		return r.readPeerSet(ctx, conn)
	case protocol.ReadOwner:
		return r.readOwner(ctx, conn)
	case protocol.List:
		return r.list(ctx, conn)
	case protocol.Settle:
		return r.settle(ctx, conn)
	case protocol.Count:
		return r.count(ctx, conn, command)
	case protocol.Activate, protocol.Release:
		return r.tell(ctx, conn, command)
	default:
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Denied}, fmt.Errorf("unknown command %q", command.Verb)
	}
}

// writeLog runs a command of the log. The caller's context does not cancel it half-way: whether
// an entry is durable must be known.
func (r *runner) writeLog(ctx context.Context, verb protocol.Verb, write logWrite) (protocol.Reply, error) {
	err := write.err
	log := r.executor.entries.log
	ctx = context.WithoutCancel(ctx)
	r.entry.turn <- struct{}{}
	defer func() { <-r.entry.turn }()
	if err == nil {
		begun := time.Now()
		entry := write.entry
		entry.Version = r.entry.present().Version
		switch {
		case write.skip:
		case verb == protocol.Forget:
			err = r.entry.end(ctx, entry, write.outcome, write.result.committed())
		case entry.Version == "":
			entry, err = log.Begin(ctx, entry)
		default:
			entry, err = r.entry.advance(ctx, entry)
		}
		if err == nil && verb != protocol.Forget {
			r.executor.entries.logged.Store(int64(time.Since(begun)))
			r.entry.took(entry)
		}
	}
	return logged(err)
}

func (r *runner) resource(conn *region.Conn) dynamic.ResourceInterface {
	return r.kind.in(conn, r.key.Namespace)
}

// in returns the kind's client in a peer.
func (k Kind) in(conn *region.Conn, namespace string) dynamic.ResourceInterface {
	client := conn.Dynamic().Resource(k.Resource)
	if k.Namespaced {
		return client.Namespace(namespace)
	}
	return client
}

// write sends one conditional write and reports whether it was applied.
func (r *runner) write(ctx context.Context, attempt *region.Attempt, conn *region.Conn, command protocol.Command) (protocol.Reply, error) {
	obj, err := r.body(command)
	if err != nil {
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Denied}, err
	}
	var got *unstructured.Unstructured
	client := r.resource(conn)
	switch command.Verb {
	case protocol.Create:
		got, err = client.Create(ctx, obj, metav1.CreateOptions{FieldManager: fieldManager, DryRun: r.dryRun()})
	case protocol.Put:
		got, err = client.Update(ctx, obj, metav1.UpdateOptions{FieldManager: fieldManager})
	default:
		uid := types.UID(command.UID)
		err = client.Delete(ctx, r.key.Name, metav1.DeleteOptions{
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
	case !r.isGuard(command.Object):
	case err != nil:
		err = r.guardRefused(conn.Peer(), command, err)
	case command.Verb == protocol.Create:
		r.executor.guards.taken(ctx, conn, r.kind)
	}
	if err == nil && got != nil {
		if reply.Object, err = r.remember(got); err != nil {
			return protocol.Reply{Class: protocol.Unknown, Code: protocol.Unavailable}, err
		}
	}
	return reply, err
}

// body returns the object that a write sends, or nil for a delete.
func (r *runner) body(command protocol.Command) (*unstructured.Unstructured, error) {
	switch command.Verb {
	case protocol.Create:
		// An inert reservation is derived from the content that it will get.
		token := command.Object.Payload
		if r.kind.Inert != nil && token == "" && !r.isGuard(command.Object) {
			token = r.inertToken(command.Object)
		}
		c, err := r.content(token)
		if err != nil {
			return nil, err
		}
		return r.kind.born(r.key, command.Object, c)
	case protocol.Put:
		return r.changed(command)
	default:
		return nil, nil
	}
}

// guardRefused adds the remedy to the error of a peer that rejected a guard.
func (r *runner) guardRefused(peer region.PeerName, command protocol.Command, err error) error {
	if _, was, _ := r.recall(command.UID, command.RV); command.Verb == protocol.Put && was.Payload != command.Object.Payload {
		return scrubRefused(err)
	}
	if command.Verb != protocol.Create {
		return err
	}
	refused := r.kind.guardRefused(err)
	if _, ok := errors.AsType[*GuardError](refused); ok {
		r.executor.guards.refused(peer, r.kind.GroupKind())
	}
	return refused
}

func (r *runner) isGuard(o protocol.Object) bool { return o.Guard(protocol.Mode(r.kind.Mode)) }

// inertToken returns the token of the content behind an inert reservation: that of the request,
// or that of the primary whose replica it will be.
func (r *runner) inertToken(o protocol.Object) string {
	if o.Claim.Operation == r.journal.Operation.ID && r.journal.Operation.Action != protocol.Adopt {
		return r.requestToken
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, view := range r.views {
		if view.UID == o.Claim.Of.UID && view.Payload != "" {
			return view.Payload
		}
	}
	return ""
}

// changed returns the object that a put sends, made of the object that the machine read.
func (r *runner) changed(command protocol.Command) (*unstructured.Unstructured, error) {
	base, was, ok := r.recall(command.UID, command.RV)
	if !ok {
		return nil, fmt.Errorf("put on %s at resource version %s, which was never read", command.UID, command.RV)
	}
	var c content
	var err error
	if was.Payload != command.Object.Payload {
		if c, err = r.content(command.Object.Payload); err != nil {
			return nil, err
		}
	}
	obj, err := r.kind.changed(base, was, command.Object, c, r.executor.opts.Identity, time.Now())
	if err != nil {
		return nil, err
	}
	if was.Stage == protocol.Reserved && command.Object.Stage != protocol.Reserved && command.Object.Claim.Primary {
		handOver(obj, r.kind, r.journal.FieldManager, time.Now())
	}
	return obj, nil
}

func (r *runner) read(ctx context.Context, conn *region.Conn) (protocol.Reply, error) {
	if err := r.executor.clusters.recognize(ctx, conn); err != nil {
		return untrusted(err), err
	}
	obj, err := r.resource(conn).Get(ctx, r.key.Name, metav1.GetOptions{})
	reply := protocol.Reply{Class: protocol.Applied, Code: classifyRead(err)}
	if err != nil {
		if reply.Code == protocol.NotFound {
			err = nil
		}
		return reply, err
	}
	if reply.Object, err = r.remember(obj); err != nil {
		reply.Code = protocol.Denied
	}
	return reply, err
}

func (r *runner) readPeerSet(ctx context.Context, conn *region.Conn) (protocol.Reply, error) {
	set, err := r.executor.clusters.readSet(ctx, conn)
	reply := protocol.Reply{Class: protocol.Applied, Code: classifyRead(err)}
	if err == nil {
		reply.PeerSet = set.view
	}
	return reply, err
}

func (r *runner) readOwner(ctx context.Context, conn *region.Conn) (protocol.Reply, error) {
	owner := r.executor.kinds.of(r.kind.Within)
	obj, err := conn.Dynamic().Resource(r.kind.Within).Get(ctx, r.key.Namespace, metav1.GetOptions{})
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

// tell calls the kind's hook with the object as it was read.
func (r *runner) tell(ctx context.Context, conn *region.Conn, command protocol.Command) (protocol.Reply, error) {
	hook := r.kind.Activated
	if command.Verb == protocol.Release {
		hook = r.kind.Released
	}
	done := protocol.Reply{Class: protocol.Applied, Code: protocol.OK}
	if hook == nil {
		return done, nil
	}
	obj, _, ok := r.recall(command.Object.UID, command.Object.RV)
	if !ok {
		return protocol.Reply{Code: protocol.Unavailable}, errors.New("the object was never read")
	}
	if err := hook(ctx, conn, obj.DeepCopy()); err != nil {
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Unavailable}, fmt.Errorf("%s hook: %w", command.Verb, err)
	}
	return done, nil
}
