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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// FieldManager is the field manager of the writes of a Coordinator. It owns the claims, and the
// fields that an Update has changed.
const FieldManager = "atoll-fanout"

const fieldManager = FieldManager

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
		Version:   r.kind.Resource.Version,
		Key:       r.key,
		Peer:      region.PeerName(command.Peer),
		Verb:      string(command.Verb),
		Stage:     string(command.Object.Stage),
		Role:      roleOf(command),
	}
	observer := r.executor.opts.Observer
	if r.rehearsal != nil {
		observer = nil // a rehearsal changes nothing, so it has no steps to observe
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
	if held := r.memory.observe(event.Peer, command, reply); held != nil && err == nil {
		event.Finalizers = held.Finalizers
	}
	if reply.Code == protocol.OK && (command.Verb == protocol.Read || command.Verb == protocol.Put) {
		event.UID, event.Held = types.UID(reply.Object.UID), reply.Object.Held.Text
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
	// The Attempt keeps client-go from repeating the request: only the machine repeats requests.
	var attempt region.Attempt
	reply, err := r.perform(region.WithAttempt(call, &attempt), &attempt, command, write)
	r.executor.clusters.reach.end(peer, err != nil && call.Err() != nil && ctx.Err() == nil)
	if reply.Code == protocol.Unavailable || reply.Code == protocol.NoSuchPeer {
		r.executor.clusters.reach.noteSilence(peer, err)
	}
	if reply.Code == protocol.Denied && apierrors.IsForbidden(err) && r.executor.clusters.reach.mayBeStarting(peer) {
		reply.Code = protocol.Unavailable
	}
	return reply, err
}

// stepOf returns the name of a command in error texts.
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

// writes reports whether a command with this verb may change objects in a peer.
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

// operationID returns the ID that the log and the caller know. The claims have another ID if an
// earlier attempt of the request gave way to a rival (another operation on the name).
func (r *runner) operationID() string {
	if id := r.entry.present().ID; id != "" {
		return id
	}
	return r.journal.Operation.ID
}

// sleep waits for one quantum (see executor.quantum), with jitter so that rivals fall out of step.
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
		if reply, ok, err := r.planner().rehearse(ctx, attempt, command); ok {
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
	reply, err := r.caller().ask(ctx, attempt, conn, command)
	if command.Verb != protocol.ReadPeerSet && !writes(command.Verb) {
		// The answer of another peer may have shown meanwhile that conn leads to the wrong cluster.
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

// writeLog runs a command of the log. The caller's context does not cancel it half-way: the runner
// must know whether the log has stored the entry.
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

// in returns a client for the kind's objects in the peer behind conn.
func (k Kind) in(conn *region.Conn, namespace string) dynamic.ResourceInterface {
	client := conn.Dynamic().Resource(k.Resource)
	if k.Namespaced {
		return client.Namespace(namespace)
	}
	return client
}
