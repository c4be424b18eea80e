// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/loop"
)

// keptApart reports whether the central object was added to the peers before its plane became a
// peer. Its home is in another peer, and the protocol allows no second one. So the central object
// remains the desired state, and its plane's peer does not count for it.
func (t *task) keptApart() bool {
	home := primary(t.sights)
	state, err := t.replicator.kind.State(t.wish)
	return err == nil && (state == nil || state.Claim == nil) && home != nil && home.peer != t.itself && home.copy.Origin == t.wish.GetUID()
}

// runInPlace reconciles an object whose central plane is itself a peer. There the central object
// is under the protocol itself: it is adopted, an edit becomes the next revision, and a deletion
// a removal.
func (t *task) runInPlace(ctx context.Context) error {
	// The protocol has its own finalizer. The Replicator's is left over if the peer was not known
	// as the central plane for a while.
	if _, err := t.release(ctx); err != nil {
		return err
	}
	state, err := t.replicator.kind.State(t.wish)
	if err != nil {
		return err
	}
	if state == nil || state.Claim == nil {
		return t.adopt(ctx)
	}
	if state.Stage == fanoutv1alpha1.StageReserved {
		return nil // another operation holds the name, and has not ended
	}
	hold, requested := t.replicator.kind.Hold(t.wish)
	t.want.removing = t.wish.GetDeletionTimestamp() != nil && !requested || state.Stage == fanoutv1alpha1.StageRemoving
	home := primary(t.sights)
	if t.want.digest, err = t.replicator.kind.Digest(t.wish); err != nil {
		return err
	}
	switch {
	case home == nil:
		t.waits("no reachable peer is its home")
		return nil
	case home.peer != t.itself:
		// The home is in another peer: the central object is a replica and follows it.
		t.want.digest = home.copy.Digest
		return nil
	case requested && (hold.Reason == "" || hold.Released):
		// A sweep judges the deletion: remove, hold, or wait for others that are deleted.
		t.acted = true
		return t.replicator.coordinator.SweepObject(ctx, t.replicator.kind.GroupKind(), t.key)
	}
	return t.runAtHome(ctx, home)
}

// runAtHome reconciles an object whose home is the central object itself, unless its deletion is
// still to be judged.
func (t *task) runAtHome(ctx context.Context, home *sight) error {
	switch {
	case t.want.removing && anySilent(t.sights):
		return nil // the coordinators' sweeps continue when they are reachable
	case t.want.removing:
		return t.do(ctx, "remove", func() (*fanout.Operation, error) {
			return t.replicator.remove(ctx, t.key, fanout.RemoveOptions{UID: t.wish.GetUID(), Unreachable: fanout.Forward})
		})
	case home.copy.Digest != t.want.digest && t.replicator.kind.SeesEdits(), lagging(t.sights, home):
		return t.do(ctx, "update", func() (*fanout.Operation, error) {
			return t.replicator.coordinator.Update(ctx, t.wish.DeepCopy(), t.replicator.addOptions())
		})
	}
	return nil
}

// announce reports that the object is not in all peers, before it is in any: from then on the
// Replicator owns Ready, and the local activation does not write it.
func (t *task) announce(ctx context.Context) error {
	if t.replicator.opts.Report == nil || t.wish.GetDeletionTimestamp() != nil ||
		meta.FindStatusCondition(statusIn(t.wish).Conditions, string(v1alpha1.AccountConditionPresent)) != nil {
		return nil
	}
	digest, err := t.replicator.kind.Digest(t.template())
	if err != nil {
		return err
	}
	p := presence(t.key, t.sights, wanted{digest: digest})
	p.Reason = v1alpha1.AccountReasonPending
	return t.replicator.report(ctx, t.wish, p)
}

// adopt puts an object that was applied in the central plane under the protocol.
func (t *task) adopt(ctx context.Context) error {
	if t.wish.GetDeletionTimestamp() != nil {
		return nil
	}
	var err error
	if t.want.digest, err = t.replicator.kind.Digest(t.wish); err != nil {
		return err
	}
	if peer := unclaimed(t.sights, t.itself); peer != "" {
		t.conflict("an object of the same name was also applied in %s: delete one of the two", peer)
		return nil
	}
	if home := primary(t.sights); home != nil {
		t.conflict("an object in %s holds the name", home.peer)
		return nil
	}
	if len(silent(t.sights)) > 0 {
		t.waits("adopting it needs every peer")
		return nil
	}
	if t.itself == "" {
		return fmt.Errorf("adopt %s %s: the central plane is no peer", t.replicator.kind.Kind, loop.KeyText(t.key))
	}
	return t.do(ctx, "adopt", func() (*fanout.Operation, error) {
		return t.replicator.coordinator.Adopt(ctx, t.itself, t.replicator.kind.GroupKind(), t.key)
	})
}
