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

// keptApart says whether the central object was brought to the peers before its plane
// became one of them. Its copies have their home there, and no object can stand under
// the protocol in its own place; so it stays the wish that it was, and its plane's peer
// does not count for it.
func (t *task) keptApart() bool {
	home := primary(t.sights)
	state, err := t.kind.State(t.wish)
	return err == nil && (state == nil || state.Claim == nil) && home != nil && home.peer != t.itself && home.copy.Origin == t.wish.GetUID()
}

// runInPlace brings an object along whose central plane is itself a peer: there is
// no copy of it, it is the one that the protocol knows. What was applied is adopted,
// an edit becomes the next revision, a deletion a removal.
func (t *task) runInPlace(ctx context.Context) error {
	// The protocol has a finalizer of its own. Ours stands there if the peer was not
	// known to be the central plane for a while.
	if _, err := t.release(ctx); err != nil {
		return err
	}
	state, err := t.kind.State(t.wish)
	if err != nil {
		return err
	}
	removing := t.wish.GetDeletionTimestamp() != nil
	if state == nil || state.Claim == nil {
		if removing {
			return nil
		}
		if t.want.digest, err = t.kind.Digest(t.wish); err != nil {
			return err
		}
		return t.adopt(ctx)
	}
	if state.Stage == fanoutv1alpha1.StageReserved {
		return nil // somebody's operation, which has not ended
	}
	hold, requested := t.kind.Hold(t.wish)
	t.want.removing = removing && !requested || state.Stage == fanoutv1alpha1.StageRemoving
	home := primary(t.sights)
	if t.want.digest, err = t.kind.Digest(t.wish); err != nil {
		return err
	}
	switch {
	case home == nil:
		t.waits("no peer that answers is its home")
		return nil
	case home.peer != t.itself:
		// It decides elsewhere: here stands a replica, which follows it.
		t.want.digest = home.copy.Digest
		return nil
	case requested && (hold.Reason == "" || hold.Released):
		// A sweep judges whether it goes, is held, or waits for others that are deleted.
		t.acted = true
		return t.coordinator.SweepObject(ctx, t.kind.GroupKind(), t.key)
	case t.want.removing && t.anySilent():
		return nil // the coordinators' sweeps go on when they answer
	case t.want.removing:
		return t.do(ctx, "remove", func() (*fanout.Operation, error) {
			return t.coordinator.Remove(ctx, t.kind.GroupKind(), t.key, fanout.RemoveOptions{UID: t.wish.GetUID(), Unreachable: fanout.Forward})
		})
	case home.copy.Digest != t.want.digest && t.kind.SeesEdits(), t.lagging(home):
		return t.do(ctx, "update", func() (*fanout.Operation, error) { return t.coordinator.Update(ctx, t.wish.DeepCopy(), t.add()) })
	}
	return nil
}

// announce says that the object is not in all peers yet before it is in any: from
// then on Ready is the Replicator's, and not what holds in this one peer.
func (t *task) announce(ctx context.Context) error {
	if t.opts.Report == nil || t.wish.GetDeletionTimestamp() != nil ||
		meta.FindStatusCondition(statusIn(t.wish).Conditions, string(v1alpha1.AccountConditionPresent)) != nil {
		return nil
	}
	digest, err := t.desired()
	if err != nil {
		return err
	}
	p := presence(t.key, t.sights, wanted{digest: digest})
	p.Reason = v1alpha1.AccountReasonPending
	return t.report(ctx, t.wish, p)
}

// adopt puts what was applied in the central plane under the protocol.
func (t *task) adopt(ctx context.Context) error {
	for _, s := range t.sights {
		if s.peer != t.itself && s.copy != nil && s.copy.Stage == "" && s.copy.Bad == "" {
			t.conflict("an object of that name was applied in %s too: delete one of the two by hand", s.peer)
			return nil
		}
	}
	if home := primary(t.sights); home != nil {
		t.conflict("the name is held by an object in %s", home.peer)
		return nil
	}
	if len(silent(t.sights)) > 0 {
		t.waits("adopting it needs every peer")
		return nil
	}
	if t.itself == "" {
		return fmt.Errorf("adopt %s %s: the central plane is no peer", t.kind.Kind, loop.KeyText(t.key))
	}
	return t.do(ctx, "adopt", func() (*fanout.Operation, error) {
		return t.coordinator.Adopt(ctx, t.itself, t.kind.GroupKind(), t.key)
	})
}
