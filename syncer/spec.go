// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

const (
	// retryRejected is the retry delay of a write that a server rejected, if neither side changes.
	retryRejected = 10 * time.Minute
	// retryStatus is the retry delay of a status that a server rejected. It can be long, since a status changes
	// often enough by itself.
	retryStatus = time.Hour
)

// specs writes the specs of objects downstream.
type specs struct {
	*syncedType
	rivals   rivals
	removals removals
}

// bring writes the desired spec to o's downstream object if the object does not have it. inPlace is true if the
// object has the desired spec and the caches show all our writes. shows is the result of finalizers.add: the
// resourceVersions of the upstream object before and after our finalizer was added.
func (s specs) bring(ctx context.Context, o observed, want *desired, shows created) (again time.Duration, inPlace bool, err error) {
	w := s.records.get(o.ref).writes
	plan := planSpec(w, o.d, want, s.syncer.lease.returning())
	var after *metav1.PartialObjectMetadata
	switch plan.action {
	case specWait:
		return plan.wait, false, nil
	case specInPlace:
		if plan.proven && w != w.inPlace() {
			s.records.update(o.ref, func(d *detail) { d.writes = d.writes.inPlace() })
		}
		return 0, true, nil
	case specCreate:
		changed := w.rejected.hash != "" && w.rejected.hash != want.hash
		after, again, err = s.create(ctx, o.ref, want, changed)
		shows = s.shown(shows, after)
	case specUpdate:
		shows = created{}
		after, err = s.update(ctx, o, want, plan.drift)
	}
	if err != nil || after == nil {
		return s.failed(ctx, o, want, again, err)
	}
	version := ""
	if o.d != nil {
		version = o.d.GetResourceVersion()
	}
	s.report(ctx, o.ref, "", "")
	s.records.update(o.ref, func(d *detail) {
		d.writes = writes{status: d.writes.status, created: shows, spec: newPending(want.hash, version, after.GetResourceVersion())}
	})
	switch {
	case s.syncer.dry:
		return 0, false, nil // a dry run has not changed the downstream object
	case after.GetResourceVersion() == version:
		return 0, true, nil // the write changed nothing, so no event comes
	}
	return cacheDelay, false, nil
}

// shown completes the versions that the caches will show of an object that was created downstream. It returns the
// zero value if a reconcile has more to write once the caches show these versions.
func (s specs) shown(shows created, after *metav1.PartialObjectMetadata) created {
	if shows == (created{}) || after == nil || s.syncer.opts.Conditions || slices.ContainsFunc(s.rules, isReverse) {
		return created{}
	}
	shows.down, shows.until = after.GetResourceVersion(), time.Now().Add(cacheDelay)
	return shows
}

// failed decides about a write that failed with err, or that was not made. If it was not made, again is the retry
// delay.
func (s specs) failed(ctx context.Context, o observed, want *desired, again time.Duration, err error) (time.Duration, bool, error) {
	reject := func(state string) (time.Duration, bool, error) {
		s.records.update(o.ref, func(d *detail) {
			d.writes.rejected = rejection{hash: want.hash, state: state, until: time.Now().Add(retryRejected)}
		})
		return retryRejected, false, nil
	}
	switch {
	case errors.Is(err, errFight):
		return reject(anyState)
	case o.d != nil && s.recreates(err):
		again, err = s.removals.recreate(ctx, o.ref, o.d)
	case isRejected(err):
		s.report(ctx, o.ref, ReasonRefused, err.Error())
		version := ""
		if o.d != nil {
			version = o.d.GetResourceVersion()
		}
		return reject(version)
	}
	return again, false, err
}

// recreates reports whether err rejects a change of a field that a rule with Recreate covers.
func (s specs) recreates(err error) bool {
	return apierrors.IsInvalid(err) && slices.ContainsFunc(causes(err), func(c metav1.StatusCause) bool {
		return slices.ContainsFunc(s.rules, func(r rule) bool { return r.recreate && r.covers(c.Field) })
	})
}

// update applies want to the downstream object. It changes fields back that other clients changed, and reports that.
// It returns nil if nothing is to be written, and errFight if the object is left to another client.
func (s specs) update(ctx context.Context, o observed, want *desired, drift bool) (*metav1.PartialObjectMetadata, error) {
	version := o.d.GetResourceVersion()
	want.SetUID(o.d.GetUID())
	if err := s.rivals.contested(ctx, o.ref, o.d, want.hash); err != nil {
		return nil, err
	}
	if drift && len(s.rivals.overCap(o.ref, fieldsRemoved)) > 0 {
		return nil, s.rivals.yield(ctx, o.ref, []string{fieldsRemoved + " by one of " + s.rivals.lastWriters(ctx, o.place)})
	}
	after, err := s.apply(ctx, want, false)
	theirs := conflicts(err)
	if len(theirs) > 0 {
		if s.leavesToOthers(o.NamespacedName, theirs) {
			return nil, nil //nolint:nilnil // the cache will show that the field is theirs
		}
		if over := s.rivals.overCap(o.ref, theirs...); drift && len(over) > 0 {
			return nil, s.rivals.yield(ctx, o.ref, over)
		}
		if after, err = s.apply(ctx, want, true); err == nil {
			s.syncer.opts.Observer.overruled(ctx, OverruledEvent{
				Resource: s.kind.GVR.GroupResource(), Object: o.NamespacedName, Fields: theirs,
				APIVersion: s.kind.GVR.GroupVersion().String(), Kind: s.kind.Kind, UID: o.u.GetUID(),
			})
		}
	}
	if isUnanswered(err) {
		s.rivals.countLost(o.ref, want.hash)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case after.GetResourceVersion() == version: // nothing changed: a webhook that changes our fields in each write is no fight
	case drift && len(theirs) == 0:
		s.rivals.countRewrite(o.ref, fieldsRemoved)
	case drift:
		s.rivals.countRewrite(o.ref, theirs...)
	}
	s.wrote(ctx, WriteUpdate, o.NamespacedName)
	s.rivals.countSpec(o.ref, want.hash, version, after.GetResourceVersion())
	return after, nil
}

// mayBeTaken reports whether a rule leaves its field to a client that changes it downstream. key is the key of the
// upstream object.
func (s specs) mayBeTaken(r rule, key types.NamespacedName) bool {
	return r.owner == FirstWriter || r.owner == autoscaled && s.syncer.autoscalers.has(scaleTarget{s.kind.GroupKind(), key})
}

// leavesToOthers reports whether a rule leaves one of the conflicting fields of an upstream object to the client that
// changed it downstream.
func (s specs) leavesToOthers(key types.NamespacedName, conflicting []string) bool {
	for _, r := range s.rules {
		for _, f := range conflicting {
			if strings.HasPrefix(f, "."+strings.Join(r.names(), ".")+": ") && s.mayBeTaken(r, key) {
				return true
			}
		}
	}
	return false
}

// apply sends the desired object. It does not wait for the cache to show it.
func (s specs) apply(ctx context.Context, want *desired, force bool) (*metav1.PartialObjectMetadata, error) {
	data, err := want.body()
	if err != nil {
		return nil, err
	}
	return s.down.applyEncoded(ctx, loop.KeyOf(want.Unstructured), data, manager, force)
}

// createNamespace creates a downstream namespace, with the labels and annotations that go down.
func (s specs) createNamespace(ctx context.Context, name string) error {
	n := s.syncer.namespaces()
	if n == nil {
		created, err := s.down.createNamespace(ctx, name, s.syncer.owner)
		if created {
			s.wrote(ctx, WriteNamespace, types.NamespacedName{Name: name})
		}
		return err
	}
	err := n.create(ctx, name)
	switch {
	case err == nil:
		s.wrote(ctx, WriteNamespace, types.NamespacedName{Name: name})
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return nil
	}
	return wrap("create namespace "+name, err)
}

// reportForeign reports the object that has the namespace and name of our downstream object, and returns the retry
// delay.
func (s specs) reportForeign(ctx context.Context, of ref, present metav1.Object, hash string) time.Duration {
	message := "an object that this syncer did not make has this name downstream"
	if owner := present.GetLabels()[ownerLabel]; owner != "" {
		message += fmt.Sprintf(" (%s=%s)", ownerLabel, owner)
		s.syncer.otherSyncers.notice(ctx, fmt.Sprintf("%s %s downstream belongs to the syncer with %s=%s", s.name,
			types.NamespacedName{Namespace: present.GetNamespace(), Name: present.GetName()}, ownerLabel, owner))
	}
	return s.reportBlocked(ctx, of, present, hash, ReasonForeign, message)
}
