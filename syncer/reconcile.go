// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
)

// shortRetry is the retry delay of a reconcile that waits for a change which causes no event.
const shortRetry = synctarget.ShortRetry

// reconciler brings origins and their downstream objects up to date: it reads the caches, decides (see facts and
// planSpec), and makes the requests.
type reconciler struct {
	*syncedType
	finalizers finalizers
	conditions conditions
	pods       unscheduledPods
	specs      specs
	fields     fieldsUp
	statuses   statuses
	removals   removals
	refusals   refusals
}

func newReconciler(r *syncedType) reconciler {
	m := newRemovals(r)
	return reconciler{
		syncedType: r, finalizers: m.finalizers, conditions: m.conditions, pods: unscheduledPods{r}, specs: specs{syncedType: r, rivals: m.rivals, removals: m},
		fields: fieldsUp{r}, statuses: statuses{r, m.rivals}, removals: m, refusals: refusals{syncedType: r, removals: m},
	}
}

// observed is the state of one object in the caches. place is the key of its downstream object.
type observed struct {
	ref
	place  types.NamespacedName
	u, d   *unstructured.Unstructured // upstream and downstream; nil: absent. Each write upstream updates the version of u.
	shared bool                       // u may be synced to other targets as well
}

func (r reconciler) observe(of ref, place types.NamespacedName) observed {
	at := r.withdrawn.now()
	o := observed{ref: of, place: place}
	o.u, o.shared = r.caches.origin(of.NamespacedName)
	o.d, _ = r.caches.down.Get(place)
	if o.u != nil {
		r.withdrawn.drop(o.u.GetUID(), at)
	}
	return o
}

// facts returns the facts by which the reconcile of o decides. reason and why are not empty if o is refused.
func (r reconciler) facts(o observed) (f facts, reason Reason, why string) {
	reason, why = r.refuses(o.NamespacedName, o.place, o.u)
	f = facts{refused: reason != "", hasOrigin: o.u != nil, hasDownstream: o.d != nil}
	if o.u == nil {
		return f, reason, why
	}
	f.deleting, f.finished = o.u.GetDeletionTimestamp() != nil, finished(r.kind.GroupKind(), o.u)
	f.vanished = !o.shared && r.records.deleteUpstream && r.records.get(o.ref).downstream.of == o.u.GetUID()
	if o.d != nil {
		f.relation = r.syncer.relation(o.d, o.u, r.syncer.holds(o.u))
	}
	return f, reason, why
}

// reconcile brings one object up to date on both sides. If the record of the object shows that there is nothing to
// do, or that it must wait, reconcile does nothing.
func (r reconciler) reconcile(ctx context.Context, of ref) (again time.Duration, err error) {
	place, err := r.placeOf(of.NamespacedName)
	if err != nil {
		reason, why := Reason(""), ""
		if r.caches.hasOrigin(of.NamespacedName) {
			reason, why = ReasonNamespace, err.Error()
		}
		r.report(ctx, of, reason, why)
		return 0, nil // retried when the object changes
	}
	defer r.records.dropAppeared(of)
	now, up, down := r.caches.versions(of.NamespacedName, place)
	now.autoscaled = up != "" && r.rules.scalable() && r.syncer.autoscalers.has(scaleTarget{r.kind.GroupKind(), of.NamespacedName})
	if wait := r.records.due(of, now, up, down); wait != 0 {
		return max(wait, 0), nil
	}
	o := r.observe(of, place)
	if o.u != nil {
		before := o.u.GetResourceVersion()
		defer func() {
			if after := o.u.GetResourceVersion(); after != before {
				r.records.update(of, func(d *detail) { d.writes.upstream = newPending("", before, after) })
			}
		}()
	}
	again, err = r.act(ctx, o)
	switch {
	case isStale(err):
		return 0, loop.ErrBehind
	case apierrors.IsForbidden(err):
		r.report(ctx, of, ReasonForbidden, err.Error())
	}
	if err == nil && again == 0 {
		r.records.settle(of, now)
	}
	return again, wrap(fmt.Sprintf("sync %s %s", r.name, of.NamespacedName), err)
}

// act decides about one object, and carries the decision out.
func (r reconciler) act(ctx context.Context, o observed) (again time.Duration, err error) {
	f, reason, why := r.facts(o)
	switch f.action() {
	case actRefuse:
		return r.refusals.keepOut(ctx, o, reason, why)
	case actForget:
		r.report(ctx, o.ref, "", "")
		r.valve.withdraw(o.ref)
		r.records.forget(o.ref)
		return 0, r.removals.letGo(ctx, o.NamespacedName)
	case actRemoveOrphan:
		return r.removals.orphan(ctx, o)
	case actFinish:
		return r.removals.finish(ctx, o, f.relation)
	case actReplace:
		again, err = r.removals.remove(ctx, o.ref, o.d)
	case actReportTaken:
		r.reportTaken(ctx, o, f.relation)
	case actLeave:
		r.report(ctx, o.ref, "", "")
	case actFollow:
		var done bool
		if again, done, err = r.removals.follow(ctx, o); !done && err == nil {
			again, err = r.sync(ctx, o)
		}
	case actSync:
		again, err = r.sync(ctx, o)
	}
	r.settleValve(o.ref)
	if err == nil {
		err = r.conditions.show(ctx, o, false)
	}
	if err == nil {
		err = r.pods.publish(ctx, o)
	}
	return again, err
}

// reportTaken reports the object that has the namespace and name of o's downstream object.
func (r reconciler) reportTaken(ctx context.Context, o observed, is relation) {
	switch is {
	case misplaced:
		r.report(ctx, o.ref, ReasonCollision, fmt.Sprintf("%s downstream is the copy of %s", o.place, originOf(o.d)))
	case unknown:
		r.report(ctx, o.ref, ReasonCollision, howToMark(o.place, o.NamespacedName, o.u.GetUID(), r.syncer.owner))
	case copied, preceded, foreign:
		r.report(ctx, o.ref, ReasonForeign, r.syncer.notOurs(o.place))
	}
}

// sync writes the spec of an object down. Once the downstream object has the desired spec, sync writes its status, and
// the fields whose rule has Up, upstream.
func (r reconciler) sync(ctx context.Context, o observed) (time.Duration, error) {
	r.syncer.namespaces().synced(o.Namespace)
	spec := fields(o.u, goesUp, r.rules) // before desired takes over the content of o.u
	want, err := r.specs.desired(o.u, o.d, o.place)
	switch {
	case errors.Is(err, Skip):
		r.report(ctx, o.ref, "", "")
		return 0, nil
	case err != nil:
		r.report(ctx, o.ref, ReasonTransform, err.Error())
		return 0, nil // retried when the object changes
	}
	shows, err := r.finalizers.add(ctx, o.u)
	if err != nil {
		return 0, err
	}
	if again, inPlace, err := r.specs.bring(ctx, o, want, shows); !inPlace || err != nil {
		return again, err
	}
	r.records.seeDownstream(o.ref, o.u.GetUID(), o.d.GetUID())
	if !r.reported(o.ref, ReasonStatusRefused) {
		r.report(ctx, o.ref, "", "")
	}
	if err := r.conditions.show(ctx, o, true); err != nil {
		return 0, err
	}
	if !o.shared {
		if err := r.fields.bring(ctx, o, spec); err != nil {
			return 0, err
		}
	}
	return r.statuses.bring(ctx, o)
}

// reconcileStray handles a downstream object in a namespace that no upstream namespace maps to.
func (r reconciler) reconcileStray(ctx context.Context, of ref) (time.Duration, error) {
	place := of.NamespacedName
	defer r.records.dropAppeared(of)
	d, ok := r.caches.down.Get(place)
	if _, mapped := r.originAt(place); mapped || !ok {
		r.report(ctx, of, "", "")
		r.valve.withdraw(of)
		r.records.forget(of)
		return 0, nil
	}
	if reason, why := r.refuses(originOf(d), place, nil); reason != "" {
		r.report(ctx, of, reason, why+keptDownstream)
		return 0, nil
	}
	switch from := provenanceOf(d, manager, r.syncer.owner); {
	case !from.signed:
		r.report(ctx, of, ReasonForeign, r.syncer.notOurs(place))
		return 0, nil
	case from.lostOrigin: // no upstream object belongs there
		return r.removals.remove(ctx, of, d)
	}
	return r.removals.misplaced(ctx, of, d)
}
