// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// A conclusion converts the result of a runner's machine for callers, the log and observers.
type conclusion struct{ r *runner }

// conclude converts the machine's result into the caller's Operation and error.
func (c conclusion) conclude(ctx context.Context, result protocol.Result, err error) (*Operation, error) {
	operation := c.operation(result)
	if err == nil {
		err = c.reason(ctx, result)
	}
	c.r.executor.opts.Observer.end(ctx, EndEvent{
		Operation: operation.ID,
		Kind:      c.r.kind.GroupKind(),
		Key:       c.r.key,
		State:     operation.State,
		Durable:   operation.Durable,
		Err:       err,
	})
	return operation, err
}

func stateOf(result protocol.Result) State {
	switch result.Ending {
	case protocol.AlreadyDone:
		if len(result.Pending) > 0 {
			return Committed
		}
		return Done
	case protocol.Done:
		return Done
	case protocol.Committed:
		return Committed
	case protocol.Aborted:
		return Aborted
	case protocol.Ended:
		return Ended
	default:
		return InDoubt
	}
}

func (c conclusion) operation(result protocol.Result) *Operation {
	o := c.result(result)
	operation := o.operation(c.r.operationID(), c.r.kind)
	outcomes := slices.Collect(operation.Peers.All())
	for _, p := range result.Pending {
		if !slices.Contains(o.Peers, p) {
			// A member that is not configured in this coordinator.
			outcomes = append(outcomes, region.Outcome[PeerState]{Peer: region.PeerName(p)})
		}
	}
	unspread := c.r.machine.Unspread()
	for i, peer := range outcomes {
		switch {
		case slices.Contains(result.Pending, string(peer.Peer)):
			outcomes[i].Value, outcomes[i].Err = PeerPending, c.unconfirmed(peer.Peer)
		case peer.Value == PeerPending && o.Removal && c.r.memory.finalizersAt(peer.Peer) != nil:
			outcomes[i].Err = c.unconfirmed(peer.Peer)
		case peer.Peer == o.Primary || !unspread:
		case c.r.kind.Mode == Once && c.r.memory.finalizersAt(o.Primary) != nil:
			outcomes[i].Value = PeerGuard // guards stay until other controllers have removed their finalizers from the primary
		default:
			outcomes[i].Value = PeerPending
			outcomes[i].Err = &region.Error{Peer: peer.Peer, Op: string(c.r.machine.Op.Action), Err: fmt.Errorf("is asked after peer %s, which holds the object", o.Primary)}
		}
	}
	operation.Peers = region.ResultsOf(operationName(c.r.machine.Op.Action, c.r.kind, c.r.key), outcomes...)
	if o.committed() && !o.Removal {
		operation.Object = c.r.memory.last(string(o.UID))
	}
	return operation
}

// unconfirmed returns why peer has not confirmed the operation.
func (c conclusion) unconfirmed(peer region.PeerName) error {
	because := func(why error) error {
		return &region.Error{Peer: peer, Op: string(c.r.machine.Op.Action), Err: why}
	}
	var finalizers error
	if held := c.r.memory.finalizersAt(peer); held != nil {
		finalizers = because(held)
	}
	if err := c.r.troubles.explain(peer, finalizers); err != nil {
		return err
	}
	switch c.r.executor.clusters.identities.ownState(peer) {
	case v1alpha1.PeerQuarantined:
		return because(fmt.Errorf("the peer is being brought back: atollctl peer comeback %s continues it", peer))
	case v1alpha1.PeerJoining:
		return because(errors.New("the peer is joining the ring"))
	default:
		return because(errors.New("has not confirmed yet"))
	}
}

// result converts the machine's result into an outcome, the form in which the log stores an ended
// operation.
func (c conclusion) result(result protocol.Result) outcome {
	return outcome{
		State:       stateOf(result),
		Primary:     region.PeerName(result.Primary.Peer), // of the other operation, if that had the same effect
		UID:         types.UID(result.Primary.UID),
		Revision:    result.Revision,
		Durable:     result.Durable,
		AlreadyDone: result.Ending == protocol.AlreadyDone,
		Reason:      string(result.Reason),
		Peers:       c.r.machine.Op.Peers,
		Removal:     c.r.machine.Op.Action == protocol.Remove,
		Mode:        c.r.kind.Mode,
		Request:     c.r.journal.Request,
	}
}

func (c conclusion) outcome() []byte {
	o := c.result(c.r.machine.Result)
	if !o.committed() {
		o.Cause = c.logReason(c.r.machine.Result)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	return text
}

// logReason returns why an operation ended without effect, shortened for the log.
func (c conclusion) logReason(result protocol.Result) string {
	const limit = 2 << 10
	var err error
	switch result.Reason {
	case protocol.HeldByOther, protocol.GaveWay, protocol.Suspect, protocol.Outdated, protocol.Occupied, protocol.Missing:
		err = c.reason(context.Background(), result)
	default:
		err = c.cause(context.Background(), result)
	}
	text := strings.ToValidUTF8(err.Error(), "")
	return text[:min(len(text), limit)]
}

// operation converts an outcome into an Operation, with the state of each peer.
func (o outcome) operation(id string, kind Kind) *Operation {
	operation := &Operation{ID: id, State: o.State, Primary: o.Primary, UID: o.UID, Revision: o.Revision, Durable: o.Durable, AlreadyDone: o.AlreadyDone}
	var outcomes []region.Outcome[PeerState]
	for _, p := range o.Peers {
		peer := region.Outcome[PeerState]{Peer: region.PeerName(p), Value: PeerGuard}
		switch {
		case o.State == InDoubt:
			peer.Value = PeerPending
			peer.Err = &region.Error{Peer: peer.Peer, Op: "operation " + id, Err: errors.New("its state is not known yet")}
		case !o.committed():
			peer.Value = PeerUnchanged
		case o.Removal && kind.Mode == Everywhere && o.State == Committed && peer.Peer == o.Primary:
			peer.Value = PeerPending
			peer.Err = &region.Error{Peer: peer.Peer, Op: "operation " + id, Err: errors.New("the primary is deleted last, after every peer has confirmed")}
		case o.Removal:
			peer.Value = PeerGone
		case peer.Peer == o.Primary:
			peer.Value = PeerPrimary
		case kind.Mode == Everywhere:
			peer.Value = PeerReplica
		}
		outcomes = append(outcomes, peer)
	}
	operation.Peers = region.ResultsOf("operation "+id, outcomes...)
	return operation
}

func operationName(action protocol.Action, kind Kind, key types.NamespacedName) string {
	return fmt.Sprintf("%s %s %s", action, kind.Kind, keyString(key))
}
