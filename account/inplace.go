// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
)

// keptApart reports whether the central object was added to the peers before its plane became a
// peer. Its home is in another peer, and the protocol allows no second home. So the central object
// remains the desired state, and the plane's own peer does not count for it.
func (t *task) keptApart() bool {
	home := primary(t.observed)
	state, err := t.replicator.kind.State(t.object)
	return err == nil && (state == nil || state.Claim == nil) && home != nil && home.peer != t.itself && home.copy.Origin == t.object.GetUID()
}

// planInPlace reads a central object whose plane is itself a peer, and returns its plan.
func (t *task) planInPlace(ctx context.Context) (plan, error) {
	// The protocol has its own finalizer. The Replicator's finalizer is left over if the peer was
	// not recognized as the central plane for a while.
	if _, err := t.removeFinalizer(ctx); err != nil {
		return plan{}, err
	}
	kind := t.replicator.kind
	state, err := kind.State(t.object)
	if err != nil {
		return plan{}, err
	}
	l := local{peer: t.itself, seeEdits: kind.SeesEdits(), deleted: t.object.GetDeletionTimestamp() != nil}
	if state != nil && state.Claim != nil {
		l.claimed, l.stage = true, state.Stage
	}
	if l.digest, err = kind.Digest(t.object); err != nil {
		return plan{}, err
	}
	var hold fanout.Hold
	hold, l.requested = kind.Hold(t.object)
	l.held = hold.Reason != "" && !hold.Released
	return l.plan(t.observed), nil
}

// announce reports that the object is not in all peers, before any peer has it. From then on the
// Replicator owns the condition Ready, and the local activation does not write it.
func (t *task) announce(ctx context.Context) error {
	if t.replicator.opts.Report == nil || t.object.GetDeletionTimestamp() != nil ||
		meta.FindStatusCondition(statusIn(t.object).Conditions, string(v1alpha1.AccountConditionPresent)) != nil {
		return nil
	}
	digest, err := t.replicator.kind.Digest(t.template())
	if err != nil {
		return err
	}
	p := presence(t.key, t.observed, wanted{digest: digest})
	p.Reason = v1alpha1.AccountReasonPending
	return t.replicator.report(ctx, t.object, p)
}
