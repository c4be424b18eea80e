// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Reason is why an object or a type is not synced, in one word.
type Reason string

// Reasons of objects.
const (
	// ReasonForeign: an object that this syncer did not create has the name that the downstream object needs, or with
	// Options.Upsync the name that the upstream object needs. Of a Namespace: other clients have objects in it, or
	// have set its labels or annotations, see NamespaceOptions.
	ReasonForeign Reason = "Foreign"
	// ReasonCollision: the name that this object needs downstream belongs to a downstream object that the syncer made
	// for another upstream object, or for one that is unknown.
	ReasonCollision Reason = "Collision"
	// ReasonRefused: the downstream rejects the object, or with Options.Upsync the upstream rejects it. It is sent
	// again when either side changes, and every 10 minutes.
	ReasonRefused Reason = "Refused"
	// ReasonForbidden: a request is forbidden; the message names the request.
	ReasonForbidden Reason = "Forbidden"
	// ReasonStatusRefused: the upstream rejects the status, or the downstream rejects the part of the status that a
	// Rule sends down. It is sent again when the status or the spec changes, and every hour.
	ReasonStatusRefused Reason = "StatusRefused"
	// ReasonNotSyncable: the object has a meaning in its own cluster only.
	ReasonNotSyncable Reason = "NotSyncable"
	// ReasonNotPermitted: the object would give its author power over the other cluster, by its type (see
	// Options.Permit), its namespace or its content; or Options.Refuse refuses it. The syncer writes nothing for
	// it to the other side. A downstream object that an earlier release made stays as it is. If the upstream
	// object is deleted, its deletion waits until the downstream object is gone, or until Syncer.Detach.
	ReasonNotPermitted Reason = "NotPermitted"
	// ReasonNamespace: NamespaceMap rejects the object's namespace. If the object is a Namespace:
	// NamespaceOptions.Finish waits for objects in it that are not synced.
	ReasonNamespace Reason = "Namespace"
	// ReasonTransform: a Transformer returned an error.
	ReasonTransform Reason = "Transform"
	// ReasonFight: another client keeps changing or deleting the downstream object, or with Options.Upsync keeps
	// changing the upstream object: see FightCap. The message names the fields and the client, as far as they are
	// known.
	ReasonFight Reason = "Fight"
	// ReasonOriginGone: the downstream object has no origin for this target, and the Syncer has no evidence that the
	// origin was withdrawn. The origin may be missing upstream. Or another upstream object has the origin's name, and
	// is not for this target or is being deleted. Or the origin has neither the label nor the finalizer of this target.
	// A restore of the upstream from a backup has the same effects, so the downstream object stays. The message has
	// the facts and the remedies. Release deletes the downstream object.
	ReasonOriginGone Reason = "OriginGone"
	// ReasonAnotherSyncer: another Syncer of the same target keeps writing the downstream object with other content.
	// The object is left as it is. It is written again when it changes upstream, and after 10 minutes.
	ReasonAnotherSyncer Reason = "AnotherSyncer"
	// ReasonHeld: a deletion waits for Release, see DeleteCap.
	ReasonHeld Reason = "Held"
)

// Reasons of types.
const (
	// ReasonNotServedUpstream, ReasonNotServedDownstream: that side does not serve the type with all verbs that are
	// needed.
	ReasonNotServedUpstream   Reason = "NotServedUpstream"
	ReasonNotServedDownstream Reason = "NotServedDownstream"
	// ReasonScope: the type is namespaced on one side only.
	ReasonScope Reason = "Scope"
	// ReasonExcluded: Options.Types leaves the type out.
	ReasonExcluded Reason = "Excluded"
	// ReasonNotPermitted of a type: it needs a Power that Options.Permit lacks, or Options.Refuse refuses it. Message
	// has the details. Its objects are watched and reported, not synced.
)

// Status is the state of a Syncer at one time.
type Status struct {
	// Owner is the value of the label syncer.atoll.dev/owner on all objects that the Syncer made; empty until the
	// upstream is identified.
	Owner string
	// AnotherSyncer has the sign of another Syncer that works for the same target, and identifies this one. It is
	// empty if this Syncer noticed no sign for 10 minutes.
	AnotherSyncer string
	// Stale is the time since which the Syncer syncs nothing: at that time, Options.Lease had passed since the last
	// heartbeat that renewed the lease. Zero: the lease is held, or this process has not had it yet. Workloads
	// downstream keep running.
	Stale time.Time
	// Types are the types that the upstream serves, and the types that only the downstream serves and that
	// Options.Types selects, sorted by resource and group. Types whose objects cannot be listed are left out.
	Types []TypeStatus

	compared bool // whether a comparison of the schemas was tried
}

// TypeStatus is the state of one type.
type TypeStatus struct {
	Resource schema.GroupVersionResource
	// Reason is why the type is not synced; empty if it is. Message has the details, if there are any.
	Reason  Reason
	Message string
	// Losses are the fields that one side lacks, and the bounds by which it rejects values that the other side accepts,
	// one line each: for the spec, the losses downstream; for the status, those upstream. Objects of the type are
	// synced all the same. It is empty until the OpenAPI documents of both sides have been read.
	Losses []string
	// Err is why the cache of a side is stale. While it is not nil, nothing of the type is written or deleted.
	// Since is when the cache became stale; the other fields may be as old as that.
	Err   error
	Since time.Time
	// Upstream and Downstream count the objects on each side.
	Upstream, Downstream int
	// Held is the number of deletions that wait for Release. OriginGone of them are held for ReasonOriginGone, the
	// others for ReasonHeld.
	Held, OriginGone int
	// Problems are the objects that are not synced or whose status is not synced, sorted by namespace and name. For a
	// type that is not synced itself, they are the objects that are labelled for the target, each with the Reason of
	// the type, and Upstream counts them. These are listed every 10 minutes, with Conditions or a Heartbeat, if the
	// Syncer may list them, and 500 at most for each of the two labels that select objects. For a type that Types
	// leaves out, they are listed only if Report selects it.
	Problems []Problem
}

// Problem is the reason why one object is not synced.
type Problem struct {
	Object  types.NamespacedName // the upstream key of the object
	Reason  Reason
	Message string
	Since   time.Time
}

// Status returns the present state. It does no I/O and is safe for concurrent use.
func (s *Syncer) Status() Status {
	s.mu.Lock()
	now := Status{Owner: s.owner, compared: s.compared, Stale: s.lease.since()}
	for _, c := range s.controllers {
		now.Types = append(now.Types, c.status())
	}
	if s.namespaced != nil {
		now.Types = append(now.Types, s.namespaced.status())
	}
	for gvr, reason := range s.unsynced {
		if s.namespaced != nil && gvr.GroupResource() == namespaces.GroupResource() {
			continue
		}
		asking := s.unsyncedObjects.of(gvr)
		now.Types = append(now.Types, TypeStatus{Resource: gvr, Reason: reason, Message: howToSync(reason), Upstream: len(asking), Problems: asking})
	}
	s.mu.Unlock()
	now.AnotherSyncer, _ = s.otherSyncers.now()
	slices.SortFunc(now.Types, func(a, b TypeStatus) int {
		return cmp.Or(cmp.Compare(a.Resource.Resource, b.Resource.Resource), cmp.Compare(a.Resource.Group, b.Resource.Group))
	})
	return now
}

// Release allows the deletions that DeleteCap holds, and deletes the downstream objects that have ReasonOriginGone. It
// does so for the given types, or for all types if none is given. It returns how many deletions and downstream objects
// these are together. It does not block and is safe for concurrent use.
func (s *Syncer) Release(only ...schema.GroupResource) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*syncedType
	for _, c := range s.controllers {
		all = append(all, c.syncedType)
	}
	if s.namespaced != nil {
		all = append(all, s.namespaced.syncedType)
	}
	n := 0
	for _, r := range all {
		if len(only) > 0 && !slices.Contains(only, r.kind.GVR.GroupResource()) {
			continue
		}
		gone := r.withdrawn.release(func(of ref) bool { return r.reported(of, ReasonOriginGone) })
		for _, of := range slices.Concat(r.valve.release(len(gone)), gone) {
			s.add(of.queueKey(r.name))
			n++
		}
	}
	return n
}
