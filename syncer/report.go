// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Reason says in one word what keeps an object or a type from being synced.
type Reason string

// Reasons of objects.
const (
	// ReasonForeign: something that is not ours has the object's place downstream.
	ReasonForeign Reason = "Foreign"
	// ReasonCollision: another upstream object has its place downstream.
	ReasonCollision Reason = "Collision"
	// ReasonRefused: the downstream does not accept it. It is sent again when either side changes, and every 10 minutes.
	ReasonRefused Reason = "Refused"
	// ReasonForbidden: a request is not allowed: the message names it.
	ReasonForbidden Reason = "Forbidden"
	// ReasonStatusRefused: the upstream does not accept the status, or the downstream the part of it that a Rule sends
	// there. It is sent again when it or the spec changes, and every hour.
	ReasonStatusRefused Reason = "StatusRefused"
	// ReasonNotSyncable: it means something in its own cluster only.
	ReasonNotSyncable Reason = "NotSyncable"
	// ReasonNotPermitted: it would give its author power over the other cluster: by its type (see Options.Permit), its
	// namespace or its content, or Options.Refuse refuses it. Nothing is written to the other side for it. A copy that an
	// earlier release made stays as it is, and the object upstream, if it is deleted, waits until that copy is gone or
	// until Syncer.Detach.
	ReasonNotPermitted Reason = "NotPermitted"
	// ReasonNamespace: NamespaceMap refused its namespace.
	ReasonNamespace Reason = "Namespace"
	// ReasonTransform: a Transformer failed.
	ReasonTransform Reason = "Transform"
	// ReasonFight: somebody downstream changes it again and again, see FightCap: the message names the fields and whom.
	ReasonFight Reason = "Fight"
	// ReasonOriginGone: its copy stays although nothing upstream asks for it: the upstream lacks the origin, or has another
	// object of that name that is not for the target, or has it without label and finalizer, and this Syncer did not see it
	// go. An upstream that was restored from a backup looks like that. The message names what decides; Release deletes the copy.
	ReasonOriginGone Reason = "OriginGone"
	// ReasonAnotherSyncer: another Syncer of the same target goes on to write its copy with another content. It is left as it
	// is, and written again when the object changes upstream, and 10 minutes later.
	ReasonAnotherSyncer Reason = "AnotherSyncer"
	// ReasonHeld: its deletion waits for Release, see DeleteCap.
	ReasonHeld Reason = "Held"
)

// Reasons of types.
const (
	// ReasonNotServedUpstream, ReasonNotServedDownstream: only one side has the type, or not all that is needed of it.
	ReasonNotServedUpstream   Reason = "NotServedUpstream"
	ReasonNotServedDownstream Reason = "NotServedDownstream"
	// ReasonScope: it is namespaced on one side only.
	ReasonScope Reason = "Scope"
	// ReasonExcluded: Options.Types leaves it out.
	ReasonExcluded Reason = "Excluded"
	// ReasonNotPermitted of a type: it needs a Power that Options.Permit lacks, or Options.Refuse refuses it. Message says
	// which. Its objects are watched and reported, not synced.
)

// Status is the state of a Syncer at one time.
type Status struct {
	// Owner is the value of the label syncer.atoll.dev/owner on all that the Syncer made; empty until the upstream was
	// identified.
	Owner string
	// AnotherSyncer says why another Syncer seems to work for the same target, and which of the two this is; empty if there was
	// no sign of one for 10 minutes.
	AnotherSyncer string
	// Stale is since when nothing is written, because the heartbeat was not accepted for longer than Options.Lease; zero if
	// it is not so. What runs downstream goes on.
	Stale time.Time
	// Types are all types that one side serves, by resource and group.
	Types []TypeStatus

	compared bool // whether Losses are known
}

// TypeStatus is the state of one type.
type TypeStatus struct {
	Resource schema.GroupVersionResource
	// Reason says why the type is not synced; empty if it is. Message says more of it, where there is more to say.
	Reason  Reason
	Message string
	// Losses are the fields that one side does not have, and the bounds by which it refuses what the other accepts, one line
	// each: of the spec what the downstream drops or refuses, of the status what the upstream does. Objects of the type are
	// synced all the same. It is empty as well while the OpenAPI documents of the two sides cannot be read.
	Losses []string
	// Err says why there is no fresh copy of one side: nothing is written, and nothing deleted, while it is not nil. Since
	// is since when; what is known of the objects is as old.
	Err   error
	Since time.Time
	// Upstream and Downstream are how many objects there are.
	Upstream, Downstream int
	// Held is how many deletions wait for Release. OriginGone is how many of them are held for ReasonOriginGone, the others
	// for ReasonHeld.
	Held, OriginGone int
	// Problems are the objects that are not synced, by namespace and name. Of a type that is not synced itself these are
	// objects that are labelled for the target, each with the Reason of the type, as far as the Syncer may list them: 500 at
	// most, looked for every 10 minutes, with Conditions or a Heartbeat, and of a type that Types leaves out if Report selects
	// it. Upstream counts them.
	Problems []Problem
}

// Problem is why one object is not synced.
type Problem struct {
	Object  types.NamespacedName // where it is upstream
	Reason  Reason
	Message string
	Since   time.Time
}

// Status returns the present state. It does no I/O and is safe for concurrent use.
func (s *Syncer) Status() Status {
	s.mu.Lock()
	now := Status{Owner: s.owner, compared: s.compared, Stale: s.lease.since()}
	for _, l := range s.lanes {
		now.Types = append(now.Types, l.status())
	}
	if s.namespaced != nil {
		now.Types = append(now.Types, s.namespaced.status())
	}
	for gvr, reason := range s.unsynced {
		if s.namespaced != nil && gvr.GroupResource() == namespaces.GroupResource() {
			continue
		}
		now.Types = append(now.Types, TypeStatus{Resource: gvr, Reason: reason, Message: howToSync(reason), Upstream: len(s.asking[gvr]), Problems: slices.Clone(s.asking[gvr])})
	}
	s.mu.Unlock()
	now.AnotherSyncer, _ = s.others.now()
	slices.SortFunc(now.Types, func(a, b TypeStatus) int {
		return cmp.Or(cmp.Compare(a.Resource.Resource, b.Resource.Resource), cmp.Compare(a.Resource.Group, b.Resource.Group))
	})
	return now
}

func (l *lane) status() TypeStatus {
	s := TypeStatus{
		Resource: l.kind.GVR, Upstream: l.one.Len() + l.many.Len(), Downstream: l.down.Len(), Held: l.valve.held(), Err: l.fresh(),
	}
	if l.kind.Refused != "" {
		s.Reason, s.Message = ReasonNotPermitted, l.kind.Refused
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.Err != nil {
		s.Since = l.stale
	}
	s.Losses = slices.Clone(l.losses)
	for _, p := range l.problems {
		if p.Reason == ReasonOriginGone {
			s.OriginGone++
		}
	}
	s.Held += s.OriginGone
	s.Problems = sortedProblems(l.problems)
	return s
}

func sortedProblems(all map[types.NamespacedName]Problem) []Problem {
	return slices.SortedFunc(maps.Values(all), func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name))
	})
}

// problem records that an object has one; reason empty: none.
func (l *lane) problem(ctx context.Context, key types.NamespacedName, reason Reason, message string) {
	l.mu.Lock()
	before, had := l.problems[key]
	if had == (reason != "") && before.Reason == reason && before.Message == message {
		l.mu.Unlock()
		return
	}
	if reason == "" {
		if l.blockers.gone(key) {
			l.syncer.queue.Cancel(l.queueKey(key)) // the retry, which may be an hour away
		}
		delete(l.problems, key)
	} else {
		since := time.Now()
		if before.Reason == reason {
			since = before.Since
		}
		l.problems[key] = Problem{Object: shown(key), Reason: reason, Message: message, Since: since}
	}
	l.mu.Unlock()
	l.syncer.opts.Observer.problem(ctx, ProblemEvent{Resource: l.kind.GVR.GroupResource(), Object: shown(key), Reason: reason, Message: message})
}

// has says whether an object has that problem.
func (l *lane) has(key types.NamespacedName, reason Reason) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.problems[key].Reason == reason
}

// Release lets the deletions go that DeleteCap holds, and deletes the copies that have ReasonOriginGone, of the given types,
// or of all if none is given. It returns how many there are. It does not block.
func (s *Syncer) Release(only ...schema.GroupResource) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	lanes := slices.Collect(maps.Values(s.lanes))
	if s.namespaced != nil {
		lanes = append(lanes, s.namespaced.lane)
	}
	for _, l := range lanes {
		if len(only) > 0 && !slices.Contains(only, l.kind.GVR.GroupResource()) {
			continue
		}
		gone := l.withdrawn.release(func(key types.NamespacedName) bool { return l.has(key, ReasonOriginGone) })
		for _, key := range slices.Concat(l.valve.release(len(gone)), gone) {
			s.add(l.queueKey(key))
			n++
		}
	}
	return n
}
