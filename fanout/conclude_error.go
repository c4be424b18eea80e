// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

// reason returns the caller's error. It is nil if the operation is committed, except for three
// removals: the namespace is occupied, the peer rejoins after a restore, or another object has the
// name.
func (c conclusion) reason(ctx context.Context, result protocol.Result) error {
	name := operationName(c.r.machine.Op.Action, c.r.kind, c.r.key)
	switch result.Ending {
	case protocol.Done, protocol.AlreadyDone:
		if result.Reason == protocol.HeldByOther && c.r.machine.Op.Action == protocol.Remove {
			return fmt.Errorf("%s: the object with UID %s in peer %s was removed, but another object has the name: %w: find the peer that was restored, and bring it back (atollctl peer comeback): %w",
				name, c.r.machine.Op.UID, result.Primary.Peer, ErrReturned, c.held(result))
		}
		return nil
	case protocol.Committed:
		switch {
		case result.Reason == protocol.Occupied:
			return c.occupied(result, true)
		case result.Reason == protocol.Restored && c.r.machine.Op.Action == protocol.Remove:
			return c.rejoining(region.PeerName(result.Peer))
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
	if err := c.known(result); err != nil {
		return err
	}
	peer := region.PeerName(result.Peer)
	failed := c.r.failure(peer)
	switch result.Reason {
	case protocol.Contended:
		if failed != nil {
			return c.r.troubles.withOthers(peer, failed) // the machine cannot distinguish a webhook that rejects each write from rivals
		}
		return &region.Error{Peer: peer, Op: "reserve", Err: errors.New("the name changed hands again and again: try again")}
	case protocol.Unreachable:
		if awaited := c.r.troubles.awaited(); awaited != nil && ctx.Err() != nil {
			return unreached{late(ctx, awaited)}
		}
		if failed == nil {
			failed = &region.Error{Peer: peer, Op: "reach", Err: region.ErrUnavailable}
		}
		return unreached{c.r.troubles.withOthers(peer, failed)}
	}
	switch {
	case failed != nil && result.Reason != protocol.Late && !c.r.kind.Within.Empty() && isAbsent(failed):
		return fmt.Errorf("%w: %s %s must be Active in peer %s, and its namespace is not there: add it first: %w",
			ErrNoOwner, c.r.kind.Within.GroupResource(), c.r.key.Namespace, peer, failed)
	case failed != nil && result.Reason != protocol.Late:
		return c.r.troubles.withOthers(peer, failed)
	case ctx.Err() != nil:
		return late(ctx, c.r.troubles.awaited())
	default:
		return errors.New("its process ended before the commit")
	}
}

// known returns the error for a reason that explains the ending by itself, whether or not calls
// failed. It returns nil for any other reason.
func (c conclusion) known(result protocol.Result) error {
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
	default:
		return nil
	}
}

// rejoining returns the error of a committed removal whose object is in a peer that rejoins after a
// restore from an older state. The removed object may be one that the restore brought back, and
// another object may have the name.
func (c conclusion) rejoining(peer region.PeerName) error {
	return &InDoubtError{
		Operation: c.r.operationID(),
		Settles: fmt.Sprintf("the object with UID %s in peer %s is being removed, but the peer is being brought back: once it is back (atollctl peer comeback %s), remove the name again if an object still has it",
			c.r.machine.Op.UID, peer, peer),
		Err: &region.Error{Peer: peer, Op: string(c.r.machine.Op.Action), Err: ErrReturned},
	}
}

// late returns the error of an operation that missed its deadline. awaited, unless nil, is what the
// operation waited for when the deadline passed.
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
