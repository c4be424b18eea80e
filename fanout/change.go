// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
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

// ChangeKind is the kind of a change of the membership.
type ChangeKind string

const (
	// Join makes a peer a member.
	Join = ChangeKind(protocol.Join)
	// Leave removes from the ring a member that answers.
	Leave = ChangeKind(protocol.Leave)
	// ForceRemove removes from the ring a member that never answers again.
	ForceRemove = ChangeKind(protocol.Force)
	// Comeback is the rejoin of a peer that holds objects of the ring: a member whose store was
	// restored, or a peer that was removed by force.
	Comeback = ChangeKind(protocol.Return)
)

// Change is one change of the membership and its state.
type Change struct {
	// ID names the change in the log, in every PeerSet while the change is under way, and in
	// errors.
	ID string
	// Kind is the kind of the change.
	Kind ChangeKind
	// Peer is the peer that joins or leaves.
	Peer region.PeerName
	// State is Done; Aborted if the ring is unchanged; Ended if another process has ended the
	// change, whose effect may have been undone since; or InDoubt if the change is under way and
	// cannot continue now.
	State State
	// AlreadyDone is set if the ring had the wanted members before the call, and the call changed
	// nothing.
	AlreadyDone bool
	// Peers are the states that the peers have in their own PeerSets after the change.
	Peers region.Results[v1alpha1.PeerState]
	// Left are the objects without a claim in a peer that has left: they stay there.
	Left []Occupant
	// Lost are the objects that exist once and that a restored peer has forgotten. Their guards
	// hold their names until ReleaseRemoval.
	Lost []Loss
}

// Loss is an object that a peer has forgotten because its store was restored from an older state.
type Loss struct {
	Kind schema.GroupKind
	Key  types.NamespacedName
	// UID is the UID that the object had.
	UID types.UID
	// Operation is the ID of the operation that added the object.
	Operation string
}

// ForceRemoveOptions tune a ForceRemove.
type ForceRemoveOptions struct {
	// By names the person who vouches that the peer never returns. It is required, and stored in the
	// PeerSet of every remaining member.
	By string
}

// Join makes peer a member of the ring of the other configured peers. Peer must be configured. If
// the peer has a PeerSet already, that PeerSet must call it by this name. As a member the peer has
// every object that exists everywhere, and guards the name of every object that exists once in
// another peer. Join first sets peer to Quarantined, and decides which of the objects that peer
// holds already stay. Join blocks until the change is over or cannot continue, and is idempotent.
// If another coordinator changes the membership, Join waits for that change, and finishes it after
// a lease (Options.LeaseTimeout) without a sign of life.
//
// The error is a *BlockedError if an object in peer has a name that another peer owns. It is also a
// *BlockedError if peer was removed by force and owns an object that no member confirms. In both
// cases peer is not a member then. The error wraps ErrMembership if the configured peers and the
// PeerSets differ. It is an *InDoubtError if the change is under way and a peer does not answer:
// Start or Recover of any coordinator continues the change.
func (c *Coordinator) Join(ctx context.Context, peer region.PeerName) (*Change, error) {
	return c.submitter.change(ctx, Join, peer, "")
}

// Comeback is Join for a member whose store was restored from an older state, whether that was
// detected (ErrReturned) or not. Comeback keeps an object in peer only if the other members confirm
// it. If peer has forgotten the home of an Account, one of the replicas becomes its home, with the
// latest revision that the other members hold. Change.Lost lists the forgotten objects that exist
// once; their guards hold the names until a person calls ReleaseRemoval.
//
// The error is a *BlockedError if peer holds a committed object, and another member holds no
// object under its name: either the object was removed after the backup, or its operation has not
// reached every member yet. The peer stays in quarantine until a person deletes the object in
// peer, or its operation is recovered, and Comeback is called again.
func (c *Coordinator) Comeback(ctx context.Context, peer region.PeerName) (*Change, error) {
	return c.submitter.change(ctx, Comeback, peer, "")
}

// Leave takes peer, which must answer, out of the ring. From the start of the change on, peer gets
// no new objects. Homes in peer move to other members; guards and replicas in peer are deleted
// last. Leave blocks and is idempotent like Join. The error is a *BlockedError if objects that
// exist once have their primary in peer: the error lists them, and peer stays a member until they
// are removed. Other errors are those of Join.
func (c *Coordinator) Leave(ctx context.Context, peer region.PeerName) (*Change, error) {
	return c.submitter.change(ctx, Leave, peer, "")
}

// ForceRemove removes from the ring a member that never answers again. Names that it owned become
// free, and objects that only that member held are lost. Peer need not be configured. A process
// that still reaches peer can commit objects in peer that no member knows of. So make sure that
// peer is gone before you call ForceRemove. ForceRemove blocks and is idempotent like Join, and
// has the errors of Join.
func (c *Coordinator) ForceRemove(ctx context.Context, peer region.PeerName, opts ForceRemoveOptions) (*Change, error) {
	if peer != "" && opts.By == "" {
		return nil, fmt.Errorf("force-remove %s: ForceRemoveOptions.By is empty: name the person who vouches that the peer never returns", peer)
	}
	return c.submitter.change(ctx, ForceRemove, peer, opts.By)
}

// change begins a change of the membership and runs it to its end.
func (b *submitter) change(ctx context.Context, kind ChangeKind, peer region.PeerName, by string) (*Change, error) {
	if peer == "" {
		return nil, fmt.Errorf("%s: peer is empty: name the peer whose membership changes", kind)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s of %s: %w: %w", kind, peer, ErrAborted, err)
	}
	configured, err := b.clusters.peers(ctx)
	if err != nil {
		return nil, err
	}
	op := protocol.ChangeOperation{
		ID:          newOperationID(time.Now()),
		Kind:        protocol.ChangeKind(kind),
		Peer:        string(peer),
		Coordinator: b.opts.Identity,
		By:          by,
		Peers:       configured,
		Patience:    protocol.Patient,
		Lease:       lease,
	}
	if kind == ForceRemove {
		op.Peers = slices.DeleteFunc(op.Peers, func(p string) bool { return p == op.Peer })
	} else if op.UID, err = b.clusters.cluster(ctx, kind, peer, configured); err != nil {
		return nil, err
	}
	var silent error
	if kind != ForceRemove {
		if silent, err = b.clusters.distinct(ctx); err != nil {
			return nil, err
		}
	}
	if err := b.identity.checkLog(ctx); err != nil {
		return nil, fmt.Errorf("%s of %s: %w: %w", kind, peer, ErrAborted, err)
	}
	if err := b.clusters.identify(ctx, op.Peers); err != nil {
		return nil, fmt.Errorf("%s of %s: %w: %w", kind, peer, ErrAborted, err)
	}
	waited := silent
	if ctx.Err() == nil { // after the deadline recoverFirst fails as well, and its error would hide the cause
		waited = cmp.Or(b.recovery.recoverFirst(ctx), silent)
	}
	if err := ctx.Err(); err != nil {
		return nil, notBegun(fmt.Sprintf("%s of %s", kind, peer), context.Cause(ctx), waited)
	}
	if !b.entries.begin(op.ID) {
		return nil, fmt.Errorf("operation ID %s is in use", op.ID)
	}
	defer b.entries.done(op.ID)
	r := b.changes.changer(protocol.NewChange(op))
	r.entry.took(wal.Entry{
		ID:    op.ID,
		Kind:  fmt.Sprintf("%s %s", kind, peer),
		Key:   "operation/" + op.ID,
		Owner: cmp.Or(b.entries.holder, b.opts.Identity),
		Began: time.Now(),
	})
	return r.conclude(ctx, r.run(ctx))
}

// cluster returns the UID of the cluster behind peer.
func (cs *clusters) cluster(ctx context.Context, kind ChangeKind, peer region.PeerName, configured []string) (string, error) {
	if !slices.Contains(configured, string(peer)) {
		return "", fmt.Errorf("%s of %s: %w: the peer is not configured: configured are %v", kind, peer, ErrMembership, configured)
	}
	conn, err := cs.directory.Conn(peer)
	if err != nil {
		return "", explain(peer, string(kind), err)
	}
	uid, err := within(ctx, cs.opts.CallTimeout, func(ctx context.Context) (types.UID, error) { return conn.UID(ctx) })
	if err != nil {
		return "", fmt.Errorf("%s of %s: %w: %w", kind, peer, ErrAborted, explain(peer, "read identity", err))
	}
	return string(uid), nil
}
