// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/rivals"
)

// keptApart reports whether the central object was added to the peers before its plane became a
// peer. Then the object's home is in another peer than the plane, and the protocol allows no second
// home. So the central object remains the desired state, and the Replicator ignores the plane's own
// peer for this object.
func (t *task) keptApart() bool {
	home := primary(t.observed)
	state, err := t.replicator.kind.State(t.object)
	return err == nil && (state == nil || state.Claim == nil) && home != nil && home.peer != t.itself && home.copy.Origin == t.object.GetUID()
}

// removeCommand returns the command with which a person deletes an object of the name.
func (t *task) removeCommand() string {
	return rivals.Command(t.replicator.kind.Resource.GroupResource().String(), t.key.Namespace, t.key.Name)
}

// planInPlace reads a central object whose plane is itself a peer, and returns its plan.
func (t *task) planInPlace(ctx context.Context) (plan, error) {
	// The protocol has its own finalizer. An object has the Replicator's finalizer here only if for
	// some time no peer was recognized as the central plane.
	if _, err := t.removeFinalizer(ctx); err != nil {
		return plan{}, err
	}
	kind := t.replicator.kind
	state, err := kind.State(t.object)
	if err != nil {
		return plan{}, err
	}
	l := local{
		peer: t.itself, seeEdits: kind.SeesEdits(), deleted: t.object.GetDeletionTimestamp() != nil, remove: t.removeCommand(),
		self: rivals.Rival{Peer: string(t.itself), UID: string(t.object.GetUID()), Created: t.object.GetCreationTimestamp().UTC()},
	}
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

// announce reports in the central object's status, before any other peer has the object, that the
// object is not in all peers. From then on the Replicator owns the condition Ready, and activate
// does not write Ready.
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
