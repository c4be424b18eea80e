// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/loop"
)

// holder is the kind of Accounts. Its method Hold returns why the removal of an Account is held,
// and whether a deletion of the Account only requests its removal.
var holder = fanout.Kind{Resource: resource, Kind: "Account", Mode: fanout.Everywhere}

// leaving reports whether account was deleted and is no longer in effect. An Account whose deletion
// only requests its removal is still in effect.
func leaving(account *unstructured.Unstructured) bool {
	if account.GetDeletionTimestamp() == nil {
		return false
	}
	_, requested := holder.Hold(account)
	return !requested
}

// reportHold sets or removes the condition in s that reports why the removal of account is held.
func reportHold(s *status, account *unstructured.Unstructured) {
	held, _ := holder.Hold(account)
	if held.Reason == "" {
		meta.RemoveStatusCondition(&s.Conditions, ConditionRemovalHeld)
		return
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: ConditionRemovalHeld, Status: metav1.ConditionTrue, Reason: held.Reason, Message: brief(held.Message),
		ObservedGeneration: account.GetGeneration(),
	})
}

// The reasons of holds, as in fanout.Hold.
const (
	holdOccupied = "Occupied"
	holdUnknown  = "Unknown"
	holdTooMany  = "TooMany"
)

// removalHold is why a deletion in the central plane is held. The zero value: it is not held.
type removalHold struct{ reason, message string }

// weigh judges the deletion of a central object before its removal from the peers is committed.
// held is why the deletion is held. A positive wait means to judge again after that time, so that
// deletions at about the same time are counted together.
func (t *task) weigh() (held removalHold, wait time.Duration) {
	recorded := fanout.RecordedHold(t.object)
	switch {
	case recorded.Released:
		return removalHold{}, 0
	case recorded.Reason == holdTooMany:
		// Stay held: when a person releases some deletions, the count drops, but the remaining ones
		// need a release too.
		return removalHold{holdTooMany, recorded.Message}, 0
	}
	if wait := t.replicator.opts.RemovalCap.Settling(recorded.Since, time.Now()); wait > 0 {
		return removalHold{}, wait
	}
	if deleted, total := t.replicator.deletions(); t.replicator.opts.RemovalCap.Exceeded(deleted, total) {
		return removalHold{holdTooMany, fmt.Sprintf("%d of %d were deleted at once in the central plane", deleted, total)}, 0
	}
	if away := unreachable(t.observed); len(away) > 0 {
		return removalHold{holdUnknown, "no answer from " + names(away)}, 0
	}
	return removalHold{}, 0
}

// deletions counts central objects. total is the number of central objects that are in the peers.
// deleted is the number of these that were deleted while their removal is neither committed nor
// released.
func (r *Replicator) deletions() (deleted, total int) {
	for _, obj := range r.objects.List() {
		home := primary(r.observe(loop.KeyOf(obj)))
		if home == nil || home.copy.Origin != obj.GetUID() {
			continue
		}
		total++
		if obj.GetDeletionTimestamp() != nil && home.copy.Stage != fanoutv1alpha1.StageRemoving && !fanout.RecordedHold(obj).Released {
			deleted++
		}
	}
	return deleted, total
}

// record writes held into the annotation of the central object that reports why its deletion is
// held. It writes nothing if held is zero or the annotation already has this content.
func (t *task) record(ctx context.Context, held removalHold) error {
	recorded := fanout.RecordedHold(t.object)
	if held == (removalHold{}) || held == (removalHold{recorded.Reason, recorded.Message}) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": t.object.GetUID(), "resourceVersion": t.object.GetResourceVersion(),
		"annotations": map[string]any{fanoutv1alpha1.RemovalHeldAnnotation: held.reason + ": " + held.message},
	}})
	if err != nil {
		return err
	}
	_, err = clientFor(t.replicator.plane, t.replicator.kind, t.key.Namespace).Patch(ctx, t.key.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: ReplicatorFieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("record on %s %s in the central plane why its removal is held: %w", t.replicator.kind.Kind, loop.KeyText(t.key), err)
	}
	return nil
}
