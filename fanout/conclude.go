// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

// A conclusion makes, from the result of a runner's machine, what callers, the log and observers
// get.
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
			// A member that is not configured here.
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
			outcomes[i].Value = PeerGuard // guards are deleted after the finalizers of others at the primary are gone
		default:
			outcomes[i].Value = PeerPending
			outcomes[i].Err = &region.Error{Peer: peer.Peer, Op: string(c.r.machine.Op.Action), Err: fmt.Errorf("is asked after peer %s, which holds the object", o.Primary)}
		}
	}
	operation.Peers = region.ResultsOf(operationName(c.r.machine.Op.Action, c.r.kind, c.r.key), outcomes...)
	return operation
}

// unconfirmed returns why peer has not confirmed.
func (c conclusion) unconfirmed(peer region.PeerName) error {
	cut, err := c.r.troubles.last(peer)
	held, state := c.r.memory.finalizersAt(peer), c.r.executor.clusters.identities.ownState(peer)
	if err != nil && (!cut || held == nil) {
		return err // a call that the caller's deadline cut off says less than the finalizers read before it
	}
	why := errors.New("has not confirmed yet")
	switch {
	case held != nil:
		why = held
	case state == v1alpha1.PeerQuarantined:
		why = fmt.Errorf("the peer is being brought back: atollctl peer comeback %s continues it", peer)
	case state == v1alpha1.PeerJoining:
		why = errors.New("the peer is joining the ring")
	}
	return &region.Error{Peer: peer, Op: string(c.r.machine.Op.Action), Err: why}
}

// result returns the log's record of an ended operation.
func (c conclusion) result(result protocol.Result) outcome {
	return outcome{
		State:       stateOf(result),
		Primary:     region.PeerName(result.Primary.Peer), // the rival's, if the rival had the wanted effect
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
		o.Cause = c.told(c.r.machine.Result)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	return text
}

// told returns why an operation ended without effect, shortened for the log.
func (c conclusion) told(result protocol.Result) string {
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

// operation converts the log's record into an Operation: the state, and what each peer holds.
func (o outcome) operation(id string, kind Kind) *Operation {
	operation := &Operation{ID: id, State: o.State, Primary: o.Primary, Revision: o.Revision, Durable: o.Durable, AlreadyDone: o.AlreadyDone}
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

// reason returns the caller's error, or nil if the operation is committed. A committed removal
// whose namespace is occupied has an error, too.
func (c conclusion) reason(ctx context.Context, result protocol.Result) error {
	name := operationName(c.r.machine.Op.Action, c.r.kind, c.r.key)
	switch result.Ending {
	case protocol.Done, protocol.AlreadyDone:
		return nil
	case protocol.Committed:
		if result.Reason == protocol.Occupied {
			return c.occupied(result, true)
		}
		return nil
	case protocol.InDoubt:
		return c.inDoubt(result)
	}
	switch result.Reason {
	case protocol.HeldByOther, protocol.GaveWay, protocol.Suspect:
		return c.held(result)
	case protocol.Outdated:
		return &ConflictError{Kind: c.r.kind.GroupKind(), Key: c.r.key, Revision: result.Revision}
	case protocol.Occupied:
		return c.occupied(result, false)
	case protocol.Missing:
		if c.r.machine.Op.Action == protocol.Adopt && c.r.machine.Primary.UID == "" {
			return fmt.Errorf("%s: %w, nor does peer %s hold one that could be adopted", name, ErrNotFound, c.r.machine.Op.Target)
		}
		if found := c.r.machine.Primary.UID; found != "" && found != c.r.machine.Op.UID {
			return fmt.Errorf("%s: %w under UID %s: peer %s holds it under UID %s",
				name, ErrNotFound, c.r.machine.Op.UID, c.r.machine.Record.Primary.Peer, found)
		}
		if result.Peer != "" && c.r.machine.Op.Action == protocol.Remove {
			return fmt.Errorf("%s: %w: peer %s does not answer, but no member guards the name: an object there is dead or being removed, and is swept once the peer answers",
				name, ErrNotFound, result.Peer)
		}
		return fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	ending := ErrAborted
	if result.Ending == protocol.Ended {
		ending = ErrEnded
	}
	return fmt.Errorf("%s: %w (operation %s): %w", name, ending, c.r.operationID(), c.cause(ctx, result))
}

// cause returns why an operation ended without effect.
func (c conclusion) cause(ctx context.Context, result protocol.Result) error {
	peer := region.PeerName(result.Peer)
	switch result.Reason {
	case protocol.Membership:
		return membershipError(result.Problem)
	case protocol.Homeless:
		return &region.Error{Peer: peer, Op: "find the primary", Err: errors.New("the primary was lost with its peer and is being replaced, or its peer is not configured here")}
	case protocol.OneCluster:
		return fmt.Errorf("%w: %s and %s: configure it under one name", region.ErrSameCluster, peer, strings.Join(result.Peers, ", "))
	case protocol.NoOwner:
		state := "is not there"
		if result.Holder.UID != "" {
			state = fmt.Sprintf("is %s there", stageOf(result.Holder))
		}
		return fmt.Errorf("%w: %s %s must be Active in peer %s and %s: add it first", ErrNoOwner, c.r.kind.Within.GroupResource(), c.r.key.Namespace, peer, state)
	case protocol.Departing:
		return &region.Error{Peer: peer, Op: "adopt", Err: errors.New("the object is being deleted there")}
	case protocol.UnknownOwner:
		return &region.Error{Peer: peer, Op: "judge what holds the name", Err: fmt.Errorf("%w: its primary is there: configure that peer, or let it leave the ring", region.ErrUnknownPeer)}
	case protocol.Fenced:
		return &region.Error{Peer: peer, Op: "commit", Err: errors.New("another coordinator deleted the reservation, after one lease without a sign of life or for an abort: try again")}
	case protocol.Restored:
		return &region.Error{Peer: peer, Op: string(c.r.machine.Op.Action), Err: fmt.Errorf("%w after the commit may have been sent, so it is unknown whether it was in effect before: check what relied on it, and submit it again if it is still wanted", ErrReturned)}
	case protocol.Contended:
		if err := c.r.failure(peer); err != nil {
			return err // a webhook that refuses each write looks like rivals that change the name
		}
		return &region.Error{Peer: peer, Op: "reserve", Err: errors.New("the name changed hands again and again: try again")}
	case protocol.Unreachable:
		if awaited := c.r.troubles.awaited(); awaited != nil && ctx.Err() != nil {
			return unreached{late(ctx, awaited)}
		}
		err := c.r.failure(peer)
		if err == nil {
			err = &region.Error{Peer: peer, Op: "reach", Err: region.ErrUnavailable}
		}
		return unreached{err}
	}
	if err := c.r.failure(peer); err != nil && result.Reason != protocol.Late {
		if !c.r.kind.Within.Empty() && isAbsent(err) {
			return fmt.Errorf("%w: %s %s must be Active in peer %s, and its namespace is not there: add it first: %w",
				ErrNoOwner, c.r.kind.Within.GroupResource(), c.r.key.Namespace, peer, err)
		}
		return err
	}
	if err := ctx.Err(); err != nil {
		return late(ctx, c.r.troubles.awaited())
	}
	return errors.New("its process ended before the commit")
}

// late returns the error of an operation that missed its deadline. awaited, unless nil, is what
// the operation waited for at that moment.
func late(ctx context.Context, awaited error) error {
	return waitedFor(fmt.Errorf("it was not committed in time: %w", context.Cause(ctx)), awaited)
}

// membershipError adds the remedy to a problem of the membership.
func membershipError(problem string) error {
	switch {
	case strings.HasSuffix(problem, "has no PeerSet"):
		return fmt.Errorf("%w: %s (\"atollctl peer init\" writes the first PeerSets)", ErrMembership, problem)
	case strings.Contains(problem, "calls itself"):
		return fmt.Errorf("%w: %s: correct the peer's credentials", ErrWrongPeer, problem)
	default:
		return fmt.Errorf("%w: %s: configure exactly the peers that the PeerSets list", ErrMembership, problem)
	}
}

func stageOf(o protocol.Object) string {
	switch {
	case !o.Claimed:
		return "without a claim"
	case o.Leaving():
		return string(protocol.Removing)
	default:
		return string(o.Stage)
	}
}

func (c conclusion) held(result protocol.Result) error {
	h := result.Holder
	e := &HeldError{
		Kind:      c.r.kind.GroupKind(),
		Key:       c.r.key,
		Holder:    region.PeerName(result.HolderAt),
		UID:       types.UID(h.UID),
		Operation: h.Claim.Operation,
		Since:     time.Unix(h.Created, 0).UTC(),

		Coordinator: h.Claim.Coordinator,
	}
	if h.Claimed {
		e.Stage = stageOf(h)
	}
	if result.Reason == protocol.Suspect {
		of := h.Of(protocol.Mode(c.r.kind.Mode))
		e.Lost, e.UID = region.PeerName(of.Peer), types.UID(of.UID)
	}
	return e
}

func (c conclusion) occupied(result protocol.Result, committed bool) error {
	e := &OccupiedError{Kind: c.r.kind.GroupKind(), Key: c.r.key, Committed: committed}
	for _, o := range result.Occupants {
		e.Occupants = append(e.Occupants, Occupant{
			Peer:     region.PeerName(o.Peer),
			Resource: schema.ParseGroupResource(o.Resource),
			Key:      types.NamespacedName{Namespace: o.Namespace, Name: o.Name},
			Stage:    string(o.Stage),
		})
	}
	slices.SortFunc(e.Occupants, func(a, b Occupant) int {
		return strings.Compare(string(a.Peer)+"/"+a.Key.String(), string(b.Peer)+"/"+b.Key.String())
	})
	return e
}

func (c conclusion) inDoubt(result protocol.Result) error {
	if result.Reason == protocol.Occupied {
		return &InDoubtError{
			Operation: c.r.operationID(),
			Settles:   "it is settled by Recover (atollctl wal recover) once the objects in the namespace are removed",
			Err:       c.occupied(result, false),
		}
	}
	switch result.Reason {
	case protocol.Suspect:
		return &InDoubtError{
			Operation: c.r.operationID(),
			Settles:   "it is settled by Recover (atollctl wal recover) once the peer has come back or the loss is released",
			Err:       c.held(result),
		}
	case protocol.HeldByOther:
		return &InDoubtError{
			Operation: c.r.operationID(),
			Peers:     []region.PeerName{region.PeerName(result.Peer)},
			Settles:   fmt.Sprintf("it is settled by Recover (atollctl wal recover) once that object is gone from peer %s: a sweep deletes a reservation that no operation completes", result.HolderAt),
			Err:       c.held(result),
		}
	case protocol.TakenOver:
		return &InDoubtError{
			Operation: c.r.operationID(),
			Settles:   "it is settled by the coordinator that took it over: call Outcome (atollctl wal recover)",
			Err:       cmp.Or(c.r.failure(""), wal.ErrStale),
		}
	case protocol.LogFailed:
		return &InDoubtError{
			Operation: c.r.operationID(),
			Settles:   "it is settled by Recover (atollctl wal recover) once the log can be written",
			Err:       cmp.Or(c.r.failure(""), wal.ErrInDoubt),
		}
	}
	peer := region.PeerName(result.Peer)
	if peer == "" {
		peer = region.PeerName(c.r.machine.Record.Primary.Peer)
	}
	err := c.r.failure(peer)
	if err == nil {
		err = &region.Error{Peer: peer, Op: string(c.r.machine.Op.Action), Err: region.ErrUnavailable}
	}
	return &InDoubtError{
		Operation: c.r.operationID(),
		Peers:     []region.PeerName{peer},
		Settles:   fmt.Sprintf("it is settled by Recover (atollctl wal recover) once peer %s answers", peer),
		Err:       err,
	}
}
