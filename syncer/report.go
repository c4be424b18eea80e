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
	// Types are all types that one side serves, by resource and group.
	Types []TypeStatus
}

// TypeStatus is the state of one type.
type TypeStatus struct {
	Resource schema.GroupVersionResource
	// Reason says why the type is not synced; empty if it is. Message says more of it where it is ReasonNotPermitted.
	Reason  Reason
	Message string
	// Err says why there is no fresh copy of one side: nothing is written, and nothing deleted, while it is not nil. Since
	// is since when; what is known of the objects is as old.
	Err   error
	Since time.Time
	// Upstream and Downstream are how many objects there are.
	Upstream, Downstream int
	// Held is how many deletions wait for Release.
	Held int
	// Problems are the objects that are not synced, by namespace and name.
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
	now := Status{Owner: s.owner}
	for _, l := range s.lanes {
		now.Types = append(now.Types, l.status())
	}
	for gvr, reason := range s.unsynced {
		now.Types = append(now.Types, TypeStatus{Resource: gvr, Reason: reason})
	}
	s.mu.Unlock()
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
	s.Problems = slices.SortedFunc(maps.Values(l.problems), func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	return s
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

// Release lets the deletions go that DeleteCap holds, of the given types, or of all if none is given. It returns how many
// there are. It does not block.
func (s *Syncer) Release(only ...schema.GroupResource) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, l := range s.lanes {
		if len(only) > 0 && !slices.Contains(only, l.kind.GVR.GroupResource()) {
			continue
		}
		for _, key := range l.valve.release() {
			s.add(l.queueKey(key))
			n++
		}
	}
	return n
}
