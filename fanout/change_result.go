// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// BlockedError means that a peer cannot join, leave or come back, because of the objects that it
// holds. Remove the objects in Blocking, and repeat the change.
type BlockedError struct {
	Change string // ID of the change
	Kind   ChangeKind
	Peer   region.PeerName
	// Blocking are the objects that must be removed before the peer can join or leave.
	Blocking []Occupant
}

// Error names the objects that must be removed before the peer can join or leave.
func (e *BlockedError) Error() string {
	var names []string
	for _, o := range e.Blocking {
		names = append(names, fmt.Sprintf("%s %s in %s", o.Resource.Resource, keyString(o.Key), o.Peer))
	}
	why := "which own names that others own as well"
	switch e.Kind {
	case Leave:
		why = "which live there"
	case Comeback:
		why = "which own names that others own as well, or of which a member holds nothing, as after their removal"
	}
	return fmt.Sprintf("%s of peer %s is refused because of %s, %s: remove them first", e.Kind, e.Peer, strings.Join(names, ", "), why)
}

// Unwrap returns ErrAborted: the members have not changed.
func (e *BlockedError) Unwrap() error { return ErrAborted }

// changeJournal is the form in which the log stores a change of the membership.
type changeJournal struct {
	Operation protocol.ChangeOperation `json:"operation"`
	Record    protocol.ChangeRecord    `json:"record"`
}

// conclude converts the machine's result into the caller's Change and error.
func (r *changeRunner) conclude(ctx context.Context, err error) (*Change, error) {
	result := r.machine.Result
	change := &Change{
		ID:          r.machine.Op.ID,
		Kind:        ChangeKind(r.machine.Op.Kind),
		Peer:        region.PeerName(r.machine.Op.Peer),
		State:       stateOf(protocol.Result{Ending: result.Ending}),
		AlreadyDone: result.Ending == protocol.AlreadyDone,
		Peers:       r.states(ctx),
	}
	for _, f := range result.Left {
		change.Left = append(change.Left, r.occupant(f, change.Peer))
	}
	for _, f := range result.Lost {
		loss := Loss{UID: types.UID(f.Object.Of(f.Mode).UID), Operation: f.Object.Claim.Operation}
		if at, ok := r.recall(f.Key); ok {
			loss.Kind, loss.Key = at.kind.GroupKind(), at.key
		}
		change.Lost = append(change.Lost, loss)
	}
	if err == nil {
		err = r.reason(result)
	}
	r.changes.opts.Observer.end(ctx, EndEvent{
		Operation: change.ID, Kind: peerSetKind, Key: types.NamespacedName{Name: string(change.Peer)}, State: change.State, Err: err,
	})
	return change, err
}

// states reads the states that the peers have in their own PeerSets.
func (r *changeRunner) states(ctx context.Context) region.Results[v1alpha1.PeerState] {
	var outcomes []region.Outcome[v1alpha1.PeerState]
	ctx = context.WithoutCancel(ctx)
	for _, p := range r.machine.Op.Peers {
		set, err := r.changes.clusters.peerSet(ctx, region.PeerName(p))
		o := region.Outcome[v1alpha1.PeerState]{Peer: region.PeerName(p), Value: v1alpha1.PeerState(set.Self.State)}
		switch {
		case isAbsent(err):
			o.Value = v1alpha1.PeerOut
		case err != nil:
			o.Err = explain(o.Peer, "read the PeerSet", err)
		}
		outcomes = append(outcomes, o)
	}
	return region.ResultsOf(fmt.Sprintf("%s of %s", r.machine.Op.Kind, r.machine.Op.Peer), outcomes...)
}

func (r *changeRunner) reason(result protocol.ChangeResult) error {
	about := fmt.Sprintf("%s of %s", r.machine.Op.Kind, r.machine.Op.Peer)
	why := r.failure(region.PeerName(result.Peer))
	switch {
	case result.Ending == protocol.Done, result.Ending == protocol.AlreadyDone:
		return nil
	case result.Ending == protocol.InDoubt:
		if why == nil {
			why = errors.New(orDefault(result.Problem, string(result.Reason)))
		}
		return &InDoubtError{
			Operation: r.machine.Op.ID, Peers: unreachable(result), Err: fmt.Errorf("%s: %w", about, why),
			Settles: "it is under way: Start or Recover of any coordinator continues it once the peers answer",
		}
	case result.Reason == protocol.Occupied:
		e := &BlockedError{Change: r.machine.Op.ID, Kind: ChangeKind(r.machine.Op.Kind), Peer: region.PeerName(r.machine.Op.Peer)}
		for _, f := range result.Blocking {
			e.Blocking = append(e.Blocking, r.occupant(f, e.Peer))
		}
		return e
	case result.Reason == protocol.Membership:
		return fmt.Errorf("%s: %w: %w: %s", about, ErrAborted, ErrMembership, result.Problem)
	case result.Reason == protocol.OtherRing:
		return fmt.Errorf("%s: %w: %w: %s", about, ErrAborted, ErrOtherRing, result.Problem)
	case result.Reason == protocol.Missing:
		return fmt.Errorf("%s: %w: %w: %s", about, ErrAborted, ErrMembership, orDefault(result.Problem, "it is no member"))
	case result.Ending == protocol.Ended:
		return fmt.Errorf("%s: %w: another coordinator has ended it", about, ErrEnded)
	case why != nil:
		return fmt.Errorf("%s: %w: %w", about, ErrAborted, why)
	default:
		return fmt.Errorf("%s: %w: %s", about, ErrAborted, orDefault(result.Problem, string(result.Reason)))
	}
}

func unreachable(result protocol.ChangeResult) []region.PeerName {
	if result.Reason != protocol.Unreachable {
		return nil
	}
	return []region.PeerName{region.PeerName(result.Peer)}
}

// occupant returns the Occupant for an object that a survey found.
func (r *changeRunner) occupant(f protocol.Found, peer region.PeerName) Occupant {
	at, ok := r.recall(f.Key)
	if !ok {
		return Occupant{Peer: peer, Stage: string(f.Object.Stage)}
	}
	return Occupant{Peer: peer, Resource: at.kind.Resource.GroupResource(), Key: at.key, Stage: string(f.Object.Stage)}
}

var peerSetKind = schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "PeerSet"}

// outcome returns the outcome of an ended change, in the form in which the log stores it.
func (r *changeRunner) outcome() []byte {
	result := r.machine.Result
	o := outcome{State: stateOf(protocol.Result{Ending: result.Ending}), AlreadyDone: result.Ending == protocol.AlreadyDone, Reason: string(result.Reason)}
	if err := r.reason(result); err != nil {
		o.Reason = err.Error()
	}
	// Marshal cannot fail: an outcome holds only values that JSON can encode.
	data, _ := json.Marshal(o)
	return data
}
