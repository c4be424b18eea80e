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

// ErrUnknownOperation says that neither the log nor any peer knows an operation:
// it ended and left nothing, or never was.
var ErrUnknownOperation = errors.New("neither the log nor any peer that answers knows it")

// Explanation says how an operation, or a name, stands, and why.
type Explanation struct {
	// Operation is the ID that was asked for; empty for a name.
	Operation string
	// Action is "add", "adopt", "update", "move" or "remove"; empty for a name.
	Action string
	// Coordinator is who began it, if a claim or the log tells.
	Coordinator string
	Kind        schema.GroupKind
	Key         types.NamespacedName
	// State is how it stands by what the peers hold. It is empty for a name
	// that nobody has.
	State State
	// Since is when it began.
	Since time.Time
	// Log says what this Coordinator's log has of it; empty if nothing.
	Log string
	// Text says in a sentence how it stands, and Next what would change it.
	Text, Next string
	// Peers are what stands in each peer, by name.
	Peers []PeerExplanation
	// Changes are the changes of the membership that are under way, as the peers
	// that answer have them in their PeerSets: what is missing in the peer
	// concerned, or cannot be decided, may be so because of one.
	Changes []Changing
}

// Changing is a change of the membership that is under way.
type Changing struct {
	ID   string
	Kind ChangeKind
	// Peer is the peer that joins or leaves.
	Peer region.PeerName
	// Coordinator is who began it or went on with it last.
	Coordinator string
	// In are the peers whose PeerSet it holds, by name.
	In []region.PeerName
}

// PeerExplanation says what one peer holds of a name, and what that is.
type PeerExplanation struct {
	Peer region.PeerName
	// UID, Stage and Role are the object's; empty if there is none or it has no
	// claim.
	UID   types.UID
	Stage string
	Role  string
	// Operation and Coordinator are those of the claim.
	Operation, Coordinator string
	// Since is when the claim began, or an object without one was created.
	Since time.Time
	// Judgement is what it is: "primary", "guard", "replica", "reservation",
	// "yielded" (it was the primary), "elect" (it becomes the primary),
	// "leftover", "leaving", "unclaimed", "missing", "absent", "damaged" or
	// "undecidable".
	Judgement string
	// Rule is what was judged by: an invariant ("I2") or the title of a section
	// of docs/fanout.md.
	Rule string
	// Text says in a sentence what was found, and Next what would change it.
	Text, Next string
	// Err is why the peer could not be read.
	Err error

	names bool // the object there is of the operation that was asked for
}

// Explain says how the operation of that ID stands: one of this Coordinator's
// log, or any whose claim is found in a peer, whoever began it. It reads every
// peer, judges what stands there as the protocol does, and writes nothing. The
// error wraps ErrUnknownOperation if nobody knows it, joined with one for each
// peer that could not be read; a peer that does not answer makes no error
// otherwise, but is explained as such.
func (c *Coordinator) Explain(ctx context.Context, operation string) (*Explanation, error) {
	e, _, err := c.explain(ctx, operation)
	return e, err
}

// ExplainName says how an object's name stands in all peers: who has it, who
// wants it, and what is left of others. It writes nothing.
func (c *Coordinator) ExplainName(ctx context.Context, gk schema.GroupKind, key types.NamespacedName) (*Explanation, error) {
	kind, err := c.kindFor(gk)
	if err == nil {
		err = kind.check(key)
	}
	if err != nil {
		return nil, fmt.Errorf("explain: %w", err)
	}
	peers, err := c.peers(ctx)
	if err != nil {
		return nil, err
	}
	return c.lookAt(ctx, kind, key, peers).explain(key, peers, ""), nil
}

// known is what an operation was found by: the log's entry, if it is there, and
// one look at the name.
type known struct {
	kind   Kind
	key    types.NamespacedName
	entry  wal.Entry // zero if the log does not know it
	claims string    // the ID in its claims: that of its last attempt
	survey survey
}

func (c *Coordinator) explain(ctx context.Context, operation string) (*Explanation, known, error) {
	if operation == "" {
		return nil, known{}, errors.New("operation is empty: give the ID of one")
	}
	peers, err := c.peers(ctx)
	if err != nil {
		return nil, known{}, err
	}
	k := known{claims: operation}
	var j journal
	k.entry, j, err = c.journalled(ctx, operation)
	switch {
	case err == nil:
		if k.kind, err = c.kindFor(j.groupKind()); err != nil {
			return nil, k, fmt.Errorf("operation %s: %w", operation, err)
		}
		k.key, k.claims = j.key(), j.Operation.ID
	case errors.Is(err, wal.ErrNotFound):
		if k.kind, k.key, err = c.locate(ctx, operation, peers); err != nil {
			return nil, k, fmt.Errorf("operation %s: %w", operation, err)
		}
	default:
		return nil, k, fmt.Errorf("operation %s: write-ahead log: %w", operation, err)
	}
	k.survey = c.lookAt(ctx, k.kind, k.key, peers)
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

// journalled is what the log has of an operation, open or ended.
func (c *Coordinator) journalled(ctx context.Context, operation string) (wal.Entry, journal, error) {
	entry, err := wal.Entry{}, wal.ErrNotFound
	for e, failed := range c.log.Open(ctx) {
		if failed == nil && e.ID == operation {
			entry, err = e, nil
			break
		}
	}
	if err != nil {
		entry, err = c.log.Find(ctx, "operation/"+operation)
	}
	if err != nil {
		return wal.Entry{}, journal{}, err
	}
	j, err := decodeJournal(entry)
	return entry, j, err
}

// locate finds the name that an operation's claims stand under.
func (c *Coordinator) locate(ctx context.Context, operation string, peers []string) (Kind, types.NamespacedName, error) {
	unread := map[string]error{}
	for _, kind := range c.opts.Kinds {
		s := c.look(ctx, kind, peers)
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

// names says whether the object tells of the operation.
func (m met) names(operation string) bool {
	v := m.view
	return v.Claim.Operation == operation || v.Removal == operation || v.Revision.Operation == operation ||
		slices.ContainsFunc(v.History, func(r protocol.Revision) bool { return r.Operation == operation })
}

// of is names of an object that may not be there.
func (m met) of(operation string) bool {
	return m.obj != nil && m.bad == nil && m.view.Claimed && m.names(operation)
}

// recorded adds what the log knows to what the peers show.
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

// unnamed says how an open operation of the log stands that no primary names.
func unnamed(j journal, owned bool, otherwise string) (State, string) {
	switch {
	case !j.Record.Committing:
		return Aborted, "nothing that could commit it was sent: it never took effect"
	case j.Operation.Action == protocol.Remove && !owned:
		return Committed, "what it removes is gone"
	case j.Operation.Action != protocol.Add && owned:
		return InDoubt, "its commit may have been sent, and is not to be seen"
	default:
		return Ended, otherwise
	}
}
