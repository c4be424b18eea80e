// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
)

// facts are the facts by which a reconcile decides: about an upstream object, and about the downstream object that
// has the namespace and name to which the upstream object maps.
type facts struct {
	refused       bool     // the type, the namespace or the content may not be synced
	hasOrigin     bool     // the upstream has the object, selected for this target
	deleting      bool     // the origin is being deleted
	finished      bool     // the origin is complete, such as a Job, and must not run again
	hasDownstream bool     // the downstream has an object with our owner label at that namespace and name
	relation      relation // between the downstream object and the origin
	vanished      bool     // the downstream object was in place before, so its absence means that another client deleted it
}

// action is what a reconcile does about one object.
type action int

const (
	// actRefuse: report that the object is refused, and write nothing downstream.
	actRefuse action = iota
	// actForget: neither side has the object: drop its record, and remove our finalizer if the object exists
	// upstream and is no longer selected.
	actForget
	// actRemoveOrphan: delete the downstream object of an origin that is not selected.
	actRemoveOrphan
	// actFinish: delete the downstream object of an origin that is being deleted, then remove our finalizer.
	actFinish
	// actReplace: delete the downstream object of another origin of the same name; the next reconcile creates the
	// downstream object of this origin.
	actReplace
	// actReportTaken: report that another object has the namespace and name of the downstream object.
	actReportTaken
	// actLeave: do nothing.
	actLeave
	// actFollow: delete the origin, since another client deleted its downstream object.
	actFollow
	// actSync: write the spec down and the status up.
	actSync
)

// action returns the decision about the object. It is pure.
func (f facts) action() action {
	switch {
	case f.refused:
		return actRefuse
	case !f.hasOrigin && !f.hasDownstream:
		return actForget
	case !f.hasOrigin:
		return actRemoveOrphan
	case f.deleting:
		return actFinish
	case f.hasDownstream && f.relation == preceded:
		return actReplace
	case f.hasDownstream && f.relation != copied:
		return actReportTaken
	case !f.hasDownstream && f.finished:
		return actLeave
	case !f.hasDownstream && f.vanished:
		return actFollow
	}
	return actSync
}

// specAction is what a reconcile does about the spec of a downstream object.
type specAction int

const (
	// specWait: do nothing now, see specPlan.wait.
	specWait specAction = iota
	// specInPlace: the downstream object has the desired spec.
	specInPlace
	specCreate
	specUpdate
)

// specPlan is the decision about the spec of one downstream object.
type specPlan struct {
	action specAction
	// wait is how long to wait with specWait; 0: until an event.
	wait time.Duration
	// drift: another client changed or removed fields that we applied.
	drift bool
	// proven: the downstream object shows the desired spec, so that the record of our writes is no longer of use.
	proven bool
}

// planSpec decides about the spec of d, which is nil if there is no downstream object. While returning is true,
// objects that moved away are being deleted, and nothing is created or changed. planSpec is pure except for the
// time.
func planSpec(w writes, d *unstructured.Unstructured, want *desired, returning bool) specPlan {
	version := ""
	if d != nil {
		version = d.GetResourceVersion()
		if d.GetDeletionTimestamp() != nil {
			return specPlan{} // created again when it is gone
		}
	}
	if wait := w.spec.wait(want.hash, version); wait > 0 {
		return specPlan{wait: wait}
	}
	applied := ""
	if d != nil {
		if wait := w.spec.wait(deletionOf(d), version); wait > 0 {
			return specPlan{wait: wait} // created again when the cache shows that it is gone
		}
		if applied = d.GetAnnotations()[appliedAnnotation]; applied == want.hash {
			owns := loop.Owns(d, want.Unstructured, manager)
			if owns || w.spec.resultedIn(want.hash, version) {
				return specPlan{action: specInPlace, proven: owns}
			}
		}
	}
	if wait := w.rejected.wait(want.hash, version); wait > 0 {
		return specPlan{wait: wait}
	}
	switch {
	case returning:
		return specPlan{wait: cacheDelay}
	case d == nil:
		return specPlan{action: specCreate}
	}
	// Each write of ours sets the annotation with the hash. If our manager no longer owns that annotation, another
	// client has changed the object, even if the desired state has changed as well.
	return specPlan{action: specUpdate, drift: applied == want.hash || !loop.Applied(d, manager, "metadata", "annotations", appliedAnnotation)}
}
