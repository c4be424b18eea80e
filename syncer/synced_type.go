// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// syncedType is one type, with everything that the reconciles of its objects share.
type syncedType struct {
	syncer *Syncer
	name   string // resource.group
	kind   kind
	rules  rules

	up, down client
	caches   *caches
	records  *records
	valve    *valve
	// withdrawn are the origins whose downstream objects may be deleted.
	withdrawn withdrawals
	blockers  *blockers
}

func newSyncedType(s *Syncer, name string, k kind) *syncedType {
	r := &syncedType{
		syncer: s, name: name, kind: k, rules: rulesFor(k.GroupKind(), s.declared, s.opts.Rules),
		up: client{s.up, k.GVR, s.dryRun()}, down: client{s.down, k.GVR, s.dryRun()},
		records: newRecords(s.opts), valve: newValve(s.opts.DeleteCap),
	}
	r.blockers = newBlockers(r.retryNow)
	if k.Refused != "" {
		r.records.dropConditions() // to write the status of a refused type may already exert its power
	}
	return r
}

// report records the problem of an object, and calls the Observer if it has changed. An empty reason clears the
// problem.
func (r *syncedType) report(ctx context.Context, of ref, reason Reason, message string) {
	if !r.records.setProblem(of, reason, message) {
		return
	}
	if reason == "" && r.blockers.gone(of) {
		r.syncer.queue.Cancel(of.queueKey(r.name)) // cancels the retry, which may be an hour away
	}
	event := ProblemEvent{
		Resource: r.kind.GVR.GroupResource(), Object: of.NamespacedName, Reason: reason, Message: message,
		APIVersion: r.kind.GVR.GroupVersion().String(), Kind: r.kind.Kind,
	}
	if r.caches != nil && of.role == asOrigin { // namespaces have no caches
		if origin, _ := r.caches.origin(of.NamespacedName); origin != nil {
			event.UID = origin.GetUID()
		}
	}
	r.syncer.opts.Observer.problem(ctx, event)
}

// reported reports whether the problem of an object has that reason.
func (r *syncedType) reported(of ref, reason Reason) bool {
	return r.records.get(of).problem.Reason == reason
}

// settleValve records that no deletion of the object waits, unless the problem of the object is ReasonHeld.
func (r *syncedType) settleValve(of ref) {
	if !r.reported(of, ReasonHeld) {
		r.valve.withdraw(of)
	}
}

// retryNow queues an object although it has not changed, and drops its rejection.
func (r *syncedType) retryNow(of ref) {
	r.records.update(of, func(d *detail) { d.writes.rejected = rejection{} })
	r.syncer.add(of.queueKey(r.name))
}

func (r *syncedType) wrote(ctx context.Context, w Write, key types.NamespacedName) {
	r.syncer.opts.Observer.wrote(ctx, WriteEvent{Write: w, Resource: r.kind.GVR.GroupResource(), Object: key})
}

// placeOf returns the place of an upstream object: the namespace and name of its downstream object.
func (r *syncedType) placeOf(key types.NamespacedName) (types.NamespacedName, error) {
	if !r.kind.Namespaced {
		return key, nil
	}
	ns, err := r.syncer.opts.Namespaces.Down(key.Namespace)
	return types.NamespacedName{Namespace: ns, Name: key.Name}, err
}

// originAt returns the key of the upstream object whose downstream object has the namespace and name of place. It
// returns false if no upstream namespace maps to the namespace of place.
func (r *syncedType) originAt(place types.NamespacedName) (types.NamespacedName, bool) {
	if !r.kind.Namespaced {
		return place, true
	}
	ns, ok := r.syncer.opts.Namespaces.Up(place.Namespace)
	return types.NamespacedName{Namespace: ns, Name: place.Name}, ok
}

// refAt returns the ref of the reconcile that handles the downstream object at place.
func (r *syncedType) refAt(place types.NamespacedName) ref {
	if key, ok := r.originAt(place); ok {
		return originRef(key)
	}
	return strayRef(place)
}

// selects reports whether an upstream object is labelled for this target.
func (s *Syncer) selects(u metav1.Object) bool {
	labels := u.GetLabels()
	return labels[s.opts.Label] == s.opts.Target || labels[v1alpha1.StateLabelPrefix+s.opts.Target] == v1alpha1.StateSync
}

// holds reports whether an upstream object has our finalizer.
func (s *Syncer) holds(u metav1.Object) bool {
	return slices.Contains(u.GetFinalizers(), s.finalizer)
}
