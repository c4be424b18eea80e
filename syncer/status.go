// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// maxStatus bounds the status of one cluster in an annotation, in bytes: all annotations of an object together may
// have 256 KiB.
const maxStatus = 16 << 10

// statuses writes the status of downstream objects upstream. The fields of a status that belong to the upstream go in
// the other direction: statuses writes them downstream.
type statuses struct {
	*syncedType
	rivals rivals
}

// bring brings the statuses of o's two objects up to date. The downstream object must have the desired spec.
func (s statuses) bring(ctx context.Context, o observed) (again time.Duration, err error) {
	down, err := s.bringDown(ctx, o)
	if err != nil {
		return 0, err
	}
	up, err := s.bringUp(ctx, o)
	if err != nil {
		return 0, err
	}
	w := s.records.get(o.ref).writes
	if why := cmp.Or(w.statusUp.why, w.statusDown.why); why != "" {
		s.report(ctx, o.ref, ReasonStatusRefused, why)
	} else {
		s.report(ctx, o.ref, "", "")
	}
	if down > 0 && up > 0 {
		return min(down, up), nil
	}
	return max(down, up), nil
}

// bringUp writes the status of o's downstream object upstream, if that status belongs to the present spec.
func (s statuses) bringUp(ctx context.Context, o observed) (time.Duration, error) {
	plan, err := s.planUp(s.records.get(o.ref).writes, o)
	if err != nil {
		return 0, err
	}
	switch plan.action {
	case statusLeave:
		return 0, nil
	case statusWait:
		return plan.wait, nil
	case statusInPlace:
		s.records.update(o.ref, func(d *detail) { d.writes.status, d.writes.statusUp = pending{}, rejection{} })
		return plan.wait, nil
	case statusShown:
		s.records.update(o.ref, func(d *detail) { d.writes.statusUp = rejection{} })
		return 0, nil
	case statusTooLarge:
		s.records.update(o.ref, func(d *detail) { d.writes.statusUp = rejection{why: plan.why} })
		return 0, nil
	case statusWrite:
	}
	return s.writeUp(ctx, o, plan)
}

// writeUp applies the planned status, unless another client keeps overwriting it.
func (s statuses) writeUp(ctx context.Context, o observed, plan statusPlan) (time.Duration, error) {
	version := o.u.GetResourceVersion()
	reject := func(retry time.Duration, why string) (time.Duration, error) {
		s.records.update(o.ref, func(d *detail) {
			d.writes.statusUp = rejection{hash: plan.hash, state: plan.generation, until: time.Now().Add(retry), why: why}
		})
		return retry, nil
	}
	if why := s.rivals.contestedStatus(o.ref, plan.hash, version); why != "" {
		return reject(retryRejected, why)
	}
	if !o.shared {
		plan.want.SetResourceVersion(version) // in the status of custom resources, servers ignore the UID
	}
	after, err := s.up.apply(ctx, plan.want, s.syncer.statusManager, true, plan.subresources...)
	switch {
	case isRejectedStatus(err):
		return reject(retryStatus, err.Error())
	case err != nil:
		return 0, wrap("write status", err)
	}
	o.u.SetResourceVersion(after.GetResourceVersion())
	s.wrote(ctx, WriteStatus, o.NamespacedName)
	within := s.syncer.opts.Fights.Within
	s.records.update(o.ref, func(d *detail) {
		d.status = d.status.next(plan.hash, version, after.GetResourceVersion(), within)
		d.writes.status, d.writes.statusUp = newPending(plan.hash, version, after.GetResourceVersion()), rejection{}
	})
	return 0, nil
}

// statusAction is the decision about the status of an object upstream.
type statusAction int

const (
	// statusLeave: the downstream object has no status of the present spec; the status upstream stays.
	statusLeave statusAction = iota
	// statusInPlace: the upstream has the status, or the rejected status no longer exists.
	statusInPlace
	// statusShown: the cache shows our last write of this status.
	statusShown
	// statusTooLarge: the status does not fit into an annotation.
	statusTooLarge
	// statusWait: the status was rejected, or the cache does not show our write yet: see statusPlan.wait.
	statusWait
	statusWrite
)

// statusPlan is the decision about the status of one object upstream.
type statusPlan struct {
	action       statusAction
	want         *unstructured.Unstructured // the object to apply
	subresources []string
	hash         string // of want
	generation   string // of the upstream object
	wait         time.Duration
	why          string // with statusTooLarge
}

// planUp decides about the status of o's upstream object. It is pure except for the time.
func (s statuses) planUp(w writes, o observed) (statusPlan, error) {
	status, ok := s.statusFor(o.u, o.d)
	if !ok {
		if len(s.ofDownstream(o.d)) == 0 && w.statusUp != (rejection{}) {
			return statusPlan{action: statusInPlace, wait: shortRetry}, nil // nothing is written, so no event comes
		}
		return statusPlan{action: statusLeave}, nil
	}
	plan := statusPlan{want: loop.Identity(o.u), generation: fmt.Sprint(o.u.GetGeneration())}
	switch {
	case o.shared:
		if annotationsCount(s.kind.GroupKind()) {
			delete(status, "observedGeneration") // the write increments the generation
		}
		data, err := json.Marshal(status)
		if err != nil {
			return plan, fmt.Errorf("encode status: %w", err)
		}
		if len(data) > maxStatus {
			plan.action = statusTooLarge
			plan.why = fmt.Sprintf("the status has %d bytes, and of an object that several clusters have at most %d are kept", len(data), maxStatus)
			return plan, nil
		}
		plan.want.SetAnnotations(map[string]string{v1alpha1.StatusAnnotationPrefix + s.syncer.opts.Target: string(data)})
	case s.kind.UpStatus:
		plan.want.Object["status"] = status
		plan.subresources = []string{"status"}
	default:
		plan.want.Object["status"] = status
		if present, _ := o.u.Object["status"].(map[string]any); sameButGeneration(present, status) {
			plan.action = statusInPlace
			return plan, nil
		}
	}
	if !loop.Differs(o.u, plan.want, s.syncer.statusManager, plan.subresources...) {
		plan.action = statusInPlace
		return plan, nil
	}
	data, err := json.Marshal(plan.want.Object)
	if err != nil {
		return plan, fmt.Errorf("encode status: %w", err)
	}
	plan.hash = synctarget.Digest(data)
	version := o.u.GetResourceVersion()
	rejected := w.statusUp.wait(plan.hash, plan.generation)
	switch plan.wait = cmp.Or(rejected, w.status.wait(plan.hash, version)); {
	case plan.wait > 0:
		plan.action = statusWait
	case w.status.resultedIn(plan.hash, version):
		plan.action = statusShown
	default:
		plan.action = statusWrite
	}
	return plan, nil
}

// bringDown writes downstream the fields of the status that belong to the upstream, with the generations of the
// downstream object. If the status is not a subresource downstream, it leaves status.observedGeneration out.
func (s statuses) bringDown(ctx context.Context, o observed) (again time.Duration, err error) {
	accepted := func() (time.Duration, error) {
		if s.records.get(o.ref).writes.statusDown != (rejection{}) {
			s.records.update(o.ref, func(d *detail) { d.writes.statusDown = rejection{} })
		}
		return 0, nil
	}
	status, _ := fields(o.u, statusGoesDown, s.rules)["status"].(map[string]any)
	if len(status) == 0 {
		return accepted() // the status downstream stays
	}
	var subresources []string
	if s.kind.DownStatus {
		subresources = []string{"status"}
		translateGenerations(status, o.u.GetGeneration(), o.d.GetGeneration())
	} else {
		delete(status, "observedGeneration") // the write increments the generation
	}
	want := loop.Identity(o.d)
	want.SetAPIVersion(o.u.GetAPIVersion())
	want.SetKind(o.u.GetKind())
	want.Object["status"] = status
	if !loop.Differs(o.d, want, s.syncer.statusManager, subresources...) {
		return accepted()
	}
	data, err := json.Marshal(want.Object)
	if err != nil {
		return 0, fmt.Errorf("encode status: %w", err)
	}
	hash, generation := synctarget.Digest(data), fmt.Sprint(o.d.GetGeneration())
	if wait := s.records.get(o.ref).writes.statusDown.wait(hash, generation); wait > 0 {
		return wait, nil
	}
	want.SetResourceVersion(o.d.GetResourceVersion()) // in the status of custom resources, servers ignore the UID
	_, err = s.down.apply(ctx, want, s.syncer.statusManager, true, subresources...)
	err = wrap("write status downstream", err)
	switch {
	case isRejectedStatus(err):
		s.records.update(o.ref, func(d *detail) {
			d.writes.statusDown = rejection{hash: hash, state: generation, until: time.Now().Add(retryStatus), why: err.Error()}
		})
		return retryStatus, nil
	case err != nil:
		return 0, err
	}
	s.wrote(ctx, WriteStatusDown, o.NamespacedName)
	return accepted()
}
