// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

// changes runs changes of the membership, and finishes changes whose coordinators show no sign of
// life.
type changes struct {
	opts     *Options
	clusters *clusters
	entries  *entries
	surveyor *surveyor
	executor *executor
}

func (h *changes) changer(m *protocol.Change) *changeRunner {
	return &changeRunner{
		changes:  h,
		machine:  m,
		entry:    newLogEntry(h.entries),
		subs:     make(chan struct{}, sweepers),
		found:    map[string]foundAt{},
		departed: map[string]metav1.Time{},
		pending:  map[string]map[region.PeerName]error{},
	}
}

// settle resumes the change of the membership that a log entry stores.
func (h *changes) settle(ctx context.Context, entry wal.Entry, j changeJournal) (*Operation, error) {
	peers, err := h.clusters.peers(ctx)
	if err != nil {
		return nil, fmt.Errorf("change %s: %w", entry.ID, err)
	}
	op := j.Operation
	op.Patience = protocol.Hasty
	op.Peers = peers
	if op.Kind == protocol.Force {
		op.Peers = slices.DeleteFunc(slices.Clone(peers), func(p string) bool { return p == op.Peer })
	}
	r := h.changer(protocol.RecoverChange(op, j.Record))
	r.entry.took(entry)
	change, err := r.conclude(ctx, r.run(ctx))
	if change.State == InDoubt {
		h.entries.postpone(entry.ID)
	} else {
		h.entries.forget(entry.ID)
	}
	return &Operation{ID: change.ID, State: change.State, AlreadyDone: change.AlreadyDone}, err
}

// finishChanges finishes each change of the membership that holds the slot of a PeerSet (its
// spec.change) and shows no sign of life for a lease (Options.LeaseTimeout).
func (h *changes) finishChanges(ctx context.Context) error {
	peers, err := h.clusters.peers(ctx)
	if err != nil {
		return err
	}
	var errs []error
	seen := map[string]bool{}
	for _, peer := range peers {
		set, err := h.clusters.peerSet(ctx, region.PeerName(peer))
		if err != nil {
			continue // the survey of objects reports the unreadable peer
		}
		if set.Change.ID == "" || seen[set.Change.ID] || !h.unchangedForLease(ctx, region.PeerName(peer), set) {
			continue
		}
		seen[set.Change.ID] = true
		err = h.finish(ctx, set.Change, peers)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// unchangedForLease blocks for a lease. It returns true if two PeerSets do not change meanwhile:
// the PeerSet of peer, which was read as set, and the PeerSet of the change's anchor. The anchor
// is the peer whose slot a change takes first.
func (h *changes) unchangedForLease(ctx context.Context, peer region.PeerName, set protocol.PeerSet) bool {
	anchor, _ := h.clusters.peerSet(ctx, region.PeerName(set.Change.Anchor))
	select {
	case <-ctx.Done():
		return false
	case <-time.After(h.opts.LeaseTimeout):
	}
	now, err := h.clusters.peerSet(ctx, peer)
	later, _ := h.clusters.peerSet(ctx, region.PeerName(set.Change.Anchor))
	return err == nil && now.RV == set.RV && anchor.RV == later.RV
}

// finish completes a change that was found in the slot of a PeerSet. It does nothing if this
// process already works on the change.
func (h *changes) finish(ctx context.Context, slot protocol.Slot, peers []string) error {
	if !h.entries.begin(slot.ID) {
		return nil
	}
	defer h.entries.done(slot.ID)
	if slot.Kind == protocol.Force {
		peers = slices.DeleteFunc(slices.Clone(peers), func(p string) bool { return p == slot.Peer })
	}
	op := protocol.HelpChange(slot, protocol.ChangeOperation{Coordinator: h.opts.Identity, Peers: peers, Patience: protocol.Hasty, Lease: lease})
	r := h.changer(protocol.NewChange(op))
	_, err := r.conclude(ctx, r.run(ctx))
	return err
}
