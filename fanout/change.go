// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

// ChangeKind says what a change of the membership does.
type ChangeKind string

const (
	// Join makes a peer a member.
	Join = ChangeKind(protocol.Join)
	// Leave takes a member out of the ring that still answers.
	Leave = ChangeKind(protocol.Leave)
	// ForceRemove takes a member out of the ring that will never answer again.
	ForceRemove = ChangeKind(protocol.Force)
	// Comeback makes a peer a member again, with what it still holds.
	Comeback = ChangeKind(protocol.Return)
)

// Change is one change of the membership as it stands.
type Change struct {
	// ID names the change in the log, in every PeerSet while it is under way,
	// and in errors.
	ID string
	// Kind says what it does.
	Kind ChangeKind
	// Peer is the peer that joins or leaves.
	Peer region.PeerName
	// State says how far it has come: Done, Aborted if the ring is as it was,
	// Ended if another process has ended it and what it did may have been undone
	// since, or InDoubt while it is under way and does not go on.
	State State
	// AlreadyDone says that the ring was so before, and nothing changed.
	AlreadyDone bool
	// Peers are the states that the peers have in their own PeerSets since.
	Peers region.Results[v1alpha1.PeerState]
	// Left are objects without a claim that stay in a peer that has left.
	Left []Occupant
	// Lost are the objects that exist once and that a peer which came back has
	// forgotten. Their guards hold their names until ReleaseRemoval.
	Lost []Loss
}

// Loss is an object that a peer has forgotten which was restored from an older state.
type Loss struct {
	Kind schema.GroupKind
	Key  types.NamespacedName
	// UID is the one that it had.
	UID types.UID
	// Operation is the one that added it.
	Operation string
}

// ForceRemoveOptions tune a ForceRemove.
type ForceRemoveOptions struct {
	// By names who says that the peer never returns. It is kept in every PeerSet
	// and required.
	By string
}

// Join makes peer, which is configured and calls itself so or by no name yet, a
// member of the ring that the other configured peers are: from then on it has
// every object that exists everywhere and guards every other name. A peer that
// was a member before is quarantined first, and what it still holds is judged
// against the ring. Join blocks until every peer has confirmed and is idempotent;
// a change of another coordinator is awaited, and finished if it shows no sign of
// life.
//
// The error is a *BlockedError if an object in peer has a name that another peer
// owns: peer is not a member then. It wraps ErrMembership if peers and PeerSets
// do not agree, and is an *InDoubtError if the change is under way and a peer
// does not answer: Start or Recover, of any coordinator, go on with it.
func (c *Coordinator) Join(ctx context.Context, peer region.PeerName) (*Change, error) {
	return c.change(ctx, Join, peer, "")
}

// Comeback is Join for a member whose store was restored from an older state, whether
// that was found (ErrReturned) or not. What it holds counts only as far as the other
// members bear it out. Accounts that it has forgotten get another home, with the latest
// revision that the others have; of objects that exist once and that it has forgotten
// Change.Lost lists the guards, which hold the names until ReleaseRemoval. The error is
// a *BlockedError if it holds a committed object that a member holds nothing of: that was
// removed since, or is not everywhere yet; the peer stays in quarantine until the object
// is deleted there, or its operation recovered, and Comeback is called again.
func (c *Coordinator) Comeback(ctx context.Context, peer region.PeerName) (*Change, error) {
	return c.change(ctx, Comeback, peer, "")
}

// Leave takes peer, which answers, out of the ring. It takes no new objects from
// then on; objects that exist everywhere get their primary elsewhere, what peer
// holds of others' is deleted there last. Leave blocks and is idempotent like
// Join. The error is a *BlockedError if objects that exist once have their
// primary in peer: they are named, and peer stays a member until they are
// removed. Otherwise the errors are those of Join.
func (c *Coordinator) Leave(ctx context.Context, peer region.PeerName) (*Change, error) {
	return c.change(ctx, Leave, peer, "")
}

// ForceRemove takes a member out of the ring that never answers again: what it
// owned is free, what only it knew is lost. Peer need not be configured. Whoever
// still reaches it may commit objects there that no member knows of, so make
// sure that it is gone before. ForceRemove blocks and is idempotent like Join,
// and has its errors.
func (c *Coordinator) ForceRemove(ctx context.Context, peer region.PeerName, opts ForceRemoveOptions) (*Change, error) {
	if peer != "" && opts.By == "" {
		return nil, fmt.Errorf("force-remove %s: ForceRemoveOptions.By is empty: name who says that the peer never returns", peer)
	}
	return c.change(ctx, ForceRemove, peer, opts.By)
}

// change begins a change of the membership and carries it through.
func (c *Coordinator) change(ctx context.Context, kind ChangeKind, peer region.PeerName, by string) (*Change, error) {
	if peer == "" {
		return nil, fmt.Errorf("%s: peer is empty: name the one whose membership changes", kind)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s of %s: %w: %w", kind, peer, ErrAborted, err)
	}
	configured, err := c.peers(ctx)
	if err != nil {
		return nil, err
	}
	op := protocol.ChangeOperation{
		ID:          newOperationID(time.Now()),
		Kind:        protocol.ChangeKind(kind),
		Peer:        string(peer),
		Coordinator: c.opts.Identity,
		By:          by,
		Peers:       configured,
		Patience:    protocol.Patient,
		Lease:       lease,
	}
	if kind == ForceRemove {
		op.Peers = slices.DeleteFunc(op.Peers, func(p string) bool { return p == op.Peer })
	} else if op.UID, err = c.cluster(ctx, kind, peer, configured); err != nil {
		return nil, err
	}
	var silent error
	if kind != ForceRemove {
		if silent, err = c.distinct(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.checkLog(ctx); err != nil {
		return nil, fmt.Errorf("%s of %s: %w: %w", kind, peer, ErrAborted, err)
	}
	if err := c.identify(ctx, op.Peers); err != nil {
		return nil, fmt.Errorf("%s of %s: %w: %w", kind, peer, ErrAborted, err)
	}
	waited := silent
	if ctx.Err() == nil { // else what is asked now fails as well, and is not the cause
		waited = cmp.Or(c.recoverFirst(ctx), silent)
	}
	if err := ctx.Err(); err != nil {
		return nil, notBegun(fmt.Sprintf("%s of %s", kind, peer), context.Cause(ctx), waited)
	}
	if !c.begin(op.ID) {
		return nil, fmt.Errorf("operation ID %s is in use", op.ID)
	}
	defer c.done(op.ID)
	r := c.changer(protocol.NewChange(op))
	r.entry.took(wal.Entry{
		ID:    op.ID,
		Kind:  fmt.Sprintf("%s %s", kind, peer),
		Key:   "operation/" + op.ID,
		Owner: cmp.Or(c.holder, c.opts.Identity),
		Began: time.Now(),
	})
	return r.conclude(ctx, r.run(ctx))
}

// cluster returns the identity of the cluster behind peer.
func (c *Coordinator) cluster(ctx context.Context, kind ChangeKind, peer region.PeerName, configured []string) (string, error) {
	if !slices.Contains(configured, string(peer)) {
		return "", fmt.Errorf("%s of %s: %w: the peer is not configured: configured are %v", kind, peer, ErrMembership, configured)
	}
	conn, err := c.directory.Conn(peer)
	if err != nil {
		return "", explain(peer, string(kind), err)
	}
	uid, err := within(ctx, c.opts.CallTimeout, func(ctx context.Context) (types.UID, error) { return conn.UID(ctx) })
	if err != nil {
		return "", fmt.Errorf("%s of %s: %w: %w", kind, peer, ErrAborted, explain(peer, "read identity", err))
	}
	return string(uid), nil
}

// settleChange goes on with a change whose process ended.
func (c *Coordinator) settleChange(ctx context.Context, entry wal.Entry, j changeJournal) (*Operation, error) {
	peers, err := c.peers(ctx)
	if err != nil {
		return nil, fmt.Errorf("change %s: %w", entry.ID, err)
	}
	op := j.Operation
	op.Patience = protocol.Hasty
	op.Peers = peers
	if op.Kind == protocol.Force {
		op.Peers = slices.DeleteFunc(slices.Clone(peers), func(p string) bool { return p == op.Peer })
	}
	r := c.changer(protocol.RecoverChange(op, j.Record))
	r.entry.took(entry)
	change, err := r.conclude(ctx, r.run(ctx))
	if change.State == InDoubt {
		c.postpone(entry.ID)
	} else {
		c.forget(entry.ID)
	}
	return &Operation{ID: change.ID, State: change.State, AlreadyDone: change.AlreadyDone}, err
}

// finishChanges goes on with the changes that hold slots and show no sign of
// life for a lease.
func (c *Coordinator) finishChanges(ctx context.Context) error {
	peers, err := c.peers(ctx)
	if err != nil {
		return err
	}
	var errs []error
	seen := map[string]bool{}
	for _, peer := range peers {
		set, err := c.peerSet(ctx, region.PeerName(peer))
		if err != nil {
			continue // what looks at objects tells of it
		}
		if set.Change.ID == "" || seen[set.Change.ID] || !c.still(ctx, region.PeerName(peer), set) {
			continue
		}
		seen[set.Change.ID] = true
		err = c.finish(ctx, set.Change, peers)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// still says whether the PeerSet of peer, and that of the anchor of the change in
// it, stay as they are for a lease.
func (c *Coordinator) still(ctx context.Context, peer region.PeerName, set protocol.PeerSet) bool {
	anchor, _ := c.peerSet(ctx, region.PeerName(set.Change.Anchor))
	select {
	case <-ctx.Done():
		return false
	case <-time.After(c.opts.LeaseTimeout):
	}
	now, err := c.peerSet(ctx, peer)
	later, _ := c.peerSet(ctx, region.PeerName(set.Change.Anchor))
	return err == nil && now.RV == set.RV && anchor.RV == later.RV
}

// finish carries a change through that was found in a slot.
func (c *Coordinator) finish(ctx context.Context, slot protocol.Slot, peers []string) error {
	if !c.begin(slot.ID) {
		return nil
	}
	defer c.done(slot.ID)
	if slot.Kind == protocol.Force {
		peers = slices.DeleteFunc(slices.Clone(peers), func(p string) bool { return p == slot.Peer })
	}
	op := protocol.HelpChange(slot, protocol.ChangeOperation{Coordinator: c.opts.Identity, Peers: peers, Patience: protocol.Hasty, Lease: lease})
	r := c.changer(protocol.NewChange(op))
	_, err := r.conclude(ctx, r.run(ctx))
	return err
}
