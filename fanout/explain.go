// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

// ErrUnknownOperation means that neither the log nor any peer has an operation: it ended without a
// trace, or never existed. Check the ID. If the error also wraps region.ErrUnavailable, a peer did
// not answer: ask again when it does.
var ErrUnknownOperation = errors.New("neither the log nor any peer that answers knows it")

// Explanation is the state of an operation, or of a name, with the reasons.
type Explanation struct {
	// Operation is the requested ID; empty for a name.
	Operation string
	// Action is "add", "adopt", "update", "move" or "remove". For a name it is the action of the
	// operation that State describes; empty if no object shows an operation.
	Action string
	// Coordinator is the coordinator that began the operation; empty if neither a claim nor the log
	// names it.
	Coordinator string
	Kind        schema.GroupKind
	Key         types.NamespacedName
	// State is the operation's state according to the peers, or according to the log if the peers
	// do not show it. It is empty for a name that no object has.
	State State
	// Since is when the operation began; zero if that time is not known.
	Since time.Time
	// Log is the operation's state in this Coordinator's log; empty if the log does not have
	// it.
	Log string
	// Text describes the state in a sentence, and Next the event or command that changes it.
	Text, Next string
	// Peers describe the object in each peer, ordered by peer.
	Peers []PeerExplanation
	// Changes are the changes of the membership under way, from the PeerSets of the peers that
	// answer. One of them may be why the peer concerned lacks an object, or why an object
	// cannot be judged.
	Changes []Changing
}

// Changing is a change of the membership that is under way.
type Changing struct {
	ID   string
	Kind ChangeKind
	// Peer is the peer that joins or leaves.
	Peer region.PeerName
	// Coordinator is the coordinator that began the change, or the last one that continued it.
	Coordinator string
	// In are the peers whose PeerSets have the change in spec.change, ordered by name.
	In []region.PeerName
}

// PeerExplanation describes and judges the object that one peer holds under a name.
type PeerExplanation struct {
	Peer region.PeerName
	// UID, Stage and Role are those of the object. All are empty if the peer holds no object;
	// Stage and Role are also empty if the object has no readable claim.
	UID   types.UID
	Stage string
	Role  string
	// Operation and Coordinator are those of the claim.
	Operation, Coordinator string
	// Since is when the operation in the claim began, or when an object without a claim was created.
	Since time.Time
	// Judgement is "primary", "guard", "replica", "reservation", "yielded" (it was the
	// primary), "elect" (it becomes the primary), "leftover", "leaving", "held" (a requested
	// deletion), "lost" (its committed primary is missing), "unclaimed", "missing", "absent",
	// "damaged" or "undecidable".
	Judgement string
	// Rule is the basis of the judgement: an invariant ("I2"), the title of a section of
	// docs/fanout-specification.md, or "claim" for a claim that cannot be read.
	Rule string
	// Text describes the object in a sentence, and Next the event or command that changes it.
	Text, Next string
	// Err is why the peer could not be read.
	Err error

	names bool // the object belongs to the requested operation
}

// Explain reports the state of an operation of any coordinator: one in this Coordinator's log, or
// one whose claim is in a peer. It reads every peer, judges the objects as the protocol does, and
// writes nothing. If neither the log nor a peer has the operation, the error wraps
// ErrUnknownOperation, and also the error of each peer that could not be read. Otherwise a peer
// that does not answer is not an error: its PeerExplanation has Err.
func (c *Coordinator) Explain(ctx context.Context, operation string) (*Explanation, error) {
	e, _, err := c.inspector.explain(ctx, operation)
	return e, err
}

// ExplainName reports the state of a name in all peers: the primary that owns the name, the
// operations that want the name, and leftovers. It writes nothing.
func (c *Coordinator) ExplainName(ctx context.Context, gk schema.GroupKind, key types.NamespacedName) (*Explanation, error) {
	kind, err := c.kinds.find(gk)
	if err == nil {
		err = kind.check(key)
	}
	if err != nil {
		return nil, fmt.Errorf("explain: %w", err)
	}
	peers, err := c.clusters.peers(ctx)
	if err != nil {
		return nil, err
	}
	return c.surveyor.lookAt(ctx, kind, key, peers).explain(key, peers, ""), nil
}

// known is an operation that was found: its log entry, if there is one, and a survey of its
// name.
type known struct {
	kind   Kind
	key    types.NamespacedName
	entry  wal.Entry // zero if the log does not have it
	claims string    // operation ID in the claims of its objects: the ID of its last attempt
	survey survey
}

func (n *inspector) explain(ctx context.Context, operation string) (*Explanation, known, error) {
	if operation == "" {
		return nil, known{}, errors.New("operation is empty: give its ID")
	}
	peers, err := n.clusters.peers(ctx)
	if err != nil {
		return nil, known{}, err
	}
	k := known{claims: operation}
	var j journal
	k.entry, j, err = n.entries.journalled(ctx, operation)
	switch {
	case err == nil:
		if k.kind, err = n.kinds.find(j.groupKind()); err != nil {
			return nil, k, fmt.Errorf("operation %s: %w", operation, err)
		}
		k.key, k.claims = j.key(), j.Operation.ID
	case errors.Is(err, wal.ErrNotFound):
		if k.kind, k.key, err = n.locate(ctx, operation, peers); err != nil {
			return nil, k, fmt.Errorf("operation %s: %w", operation, err)
		}
	default:
		return nil, k, fmt.Errorf("operation %s: write-ahead log: %w", operation, err)
	}
	k.survey = n.surveyor.lookAt(ctx, k.kind, k.key, peers)
	e := k.survey.explain(k.key, peers, k.claims)
	e.Operation = operation
	if k.entry.ID != "" {
		e.Action, e.Since = string(j.Operation.Action), k.entry.Began.UTC()
		if e.Coordinator == "" {
			e.Coordinator = j.Operation.Coordinator
		}
		e.recorded(k.entry, j)
	}
	return e, k, nil
}

// locate returns the kind and name of the objects whose claims name the operation.
func (n *inspector) locate(ctx context.Context, operation string, peers []string) (Kind, types.NamespacedName, error) {
	unread := map[string]error{}
	for _, kind := range n.opts.Kinds {
		s := n.surveyor.survey(ctx, kind, peers)
		for peer, err := range s.unread {
			unread[peer] = err
		}
		for _, key := range s.keys() {
			for _, at := range []map[string]met{s.early[key], s.late[key]} {
				for _, m := range at {
					if m.bad == nil && m.view.Claimed && m.names(operation) {
						return kind, key, nil
					}
				}
			}
		}
	}
	err := ErrUnknownOperation
	for _, peer := range slices.Sorted(keysOf(unread)) {
		err = fmt.Errorf("%w; %w", err, unread[peer])
	}
	return Kind{}, types.NamespacedName{}, err
}

func keysOf(m map[string]error) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// names reports whether the claim, removal, revision or history of the object names the
// operation.
func (m met) names(operation string) bool {
	v := m.view
	return v.Claim.Operation == operation || v.Removal == operation || v.Revision.Operation == operation ||
		slices.ContainsFunc(v.History, func(r protocol.Revision) bool { return r.Operation == operation })
}

// of reports whether m is an object with a readable claim, and names the operation (see m.names).
func (m met) of(operation string) bool {
	return m.obj != nil && m.bad == nil && m.view.Claimed && m.names(operation)
}

// recorded adds the state in the log to the state in the peers.
func (e *Explanation) recorded(entry wal.Entry, j journal) {
	if !entry.Ended.IsZero() {
		var o outcome
		if err := json.Unmarshal(entry.Outcome, &o); err != nil {
			e.Log = "ended, its outcome cannot be read"
			return
		}
		e.Log = fmt.Sprintf("ended: %s", o.State)
		if e.State == "" || e.State == Ended || e.State == InDoubt && !o.committed() {
			e.State = o.State
		}
		return
	}
	e.Log = "open: " + entry.State
	if e.State == "" || e.State == Ended {
		e.State, e.Text = unnamed(j, slices.ContainsFunc(e.Peers, func(p PeerExplanation) bool { return p.Judgement == "primary" }), e.Text)
	}
	if e.State != Done {
		e.Next = "recovery settles it: Recover (atollctl operation resume " + e.Operation + ")"
	}
}

// unnamed returns the state and the text for an open operation of the log that no primary names.
// The parameter owned is true if the name has a committed primary. The parameter otherwise is the
// text for an operation about which nothing else is known.
func unnamed(j journal, owned bool, otherwise string) (State, string) {
	switch {
	case !j.Record.Committing:
		return Aborted, "nothing that could commit it was sent: it never took effect"
	case j.Operation.Action == protocol.Remove && !owned:
		return Committed, "the object that it removes is gone"
	case j.Operation.Action != protocol.Add && owned:
		return InDoubt, "its commit may have been sent, and no peer shows it"
	default:
		return Ended, otherwise
	}
}
