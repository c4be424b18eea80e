// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// orphans reports each home in a peer that was made for a central object, when this central object
// is missing. It leaves the home alone: the central plane may have been restored from a backup.
func (r *Replicator) orphans(ctx context.Context, key types.NamespacedName) error {
	var errs []error
	for _, s := range r.observe(key) {
		if s.copy == nil || s.copy.Origin == "" || !s.copy.Home || s.copy.Stage != fanoutv1alpha1.StageActive {
			continue
		}
		r.opts.Observer.orphaned(ctx, OrphanEvent{
			Kind: r.kind.GroupKind(), Key: key, Peer: s.peer, Origin: s.copy.Origin,
			Object: r.object(key, s.copy.UID),
		})
		switch {
		case s.copy.Orphaned:
		case s.err != nil:
			r.postponed.add(key)
		default:
			errs = append(errs, r.mark(ctx, key, s, true))
		}
	}
	return errors.Join(errs...)
}

// claimed removes the condition Orphaned from the objects in the peers, because their central
// object exists again.
func (t *task) claimed(ctx context.Context) error {
	var errs []error
	for _, s := range t.observed {
		if s.copy != nil && s.copy.Orphaned && s.err == nil {
			errs = append(errs, t.replicator.mark(ctx, t.key, s, false))
		}
	}
	return errors.Join(errs...)
}

// mark adds the condition Orphaned to the status of a peer's object, or removes it. It does nothing
// for kinds other than Account, which may have no conditions.
func (r *Replicator) mark(ctx context.Context, key types.NamespacedName, s observation, orphaned bool) error {
	if r.kind.Resource != resource {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	failed := func(err error) error {
		return &region.Error{Peer: s.peer, Op: fmt.Sprintf("report that %s %s is orphaned", r.kind.Kind, loop.KeyText(key)), Err: err}
	}
	conn, err := r.directory.Conn(s.peer)
	if err != nil {
		return failed(err)
	}
	client := clientFor(conn, r.kind, key.Namespace)
	obj, err := client.Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return failed(err)
	case obj.GetUID() != s.copy.UID, isOrphaned(obj) == orphaned:
		return nil // the cache will show the present object
	}
	status := map[string]any{}
	if orphaned {
		status["conditions"] = list([]metav1.Condition{{
			Type: string(v1alpha1.AccountConditionOrphaned), Status: metav1.ConditionTrue, Reason: string(v1alpha1.AccountReasonNoCentralObject),
			Message:            "the Account of the central plane that it was made for does not exist: remove this one, or apply that one again",
			ObservedGeneration: obj.GetGeneration(), LastTransitionTime: metav1.NewTime(time.Now()),
		}})
	}
	apply := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	apply.SetGroupVersionKind(r.kind.Resource.GroupVersion().WithKind(r.kind.Kind))
	apply.SetNamespace(key.Namespace)
	apply.SetName(key.Name)
	apply.SetResourceVersion(obj.GetResourceVersion()) // API servers ignore the UID in writes of a status
	err = applyStatus(ctx, client, apply, ReplicatorFieldManager, func(t string) bool { return t == string(v1alpha1.AccountConditionOrphaned) })
	if err != nil && !apierrors.IsNotFound(err) {
		return failed(err)
	}
	return nil
}

// isOrphaned reports whether the status of a peer's object has the condition Orphaned.
func isOrphaned(obj *unstructured.Unstructured) bool {
	return meta.IsStatusConditionTrue(statusIn(obj).Conditions, string(v1alpha1.AccountConditionOrphaned))
}
