// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// Another client may keep replacing a status without a new decision: the arbiters of another
// central plane with the same peer, or any other controller. To bound the writes, each correction
// is followed by a pause, twice as long as the previous one, until the status stays unchanged for
// maxPause.
const (
	contradictions = 3 // at this count the other client is reported, once
	minPause       = time.Second
	maxPause       = 5 * time.Minute
)

// statement is the status that an arbiter writes to an object: a report or a gate.
type statement interface {
	// same reports whether both statements are equal apart from transition times.
	same(other statement) bool
	// agrees reports whether both statements name the same holder of the region.
	agrees(other statement) bool
}

// statementRecord is the record of the last statement that was written to an object.
type statementRecord struct {
	uid   types.UID
	over  string // the resourceVersion before the last statement was written
	said  statement
	pause time.Duration // after the last correction
	next  time.Time     // when the pause ends
	seen  string        // the resourceVersion of the last contradiction
	count int           // of contradictions
}

// statementRecords are the records of one peer, for one kind.
type statementRecords struct {
	mu    sync.Mutex
	byKey map[region.Key]*statementRecord
}

// record records that s was written to obj.
func (t *statementRecords) record(k region.Key, obj *unstructured.Unstructured, s statement) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.byKey[k]
	if was == nil || was.uid != obj.GetUID() || !was.said.agrees(s) {
		was = &statementRecord{uid: obj.GetUID()}
	}
	if t.byKey == nil {
		t.byKey = map[region.Key]*statementRecord{}
	}
	was.over, was.said = obj.GetResourceVersion(), s
	t.byKey[k] = was
}

// report returns the last report that was written to the RegionClaim obj; nil if none is known.
func (t *statementRecords) report(k region.Key, obj *unstructured.Unstructured) *report {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.byKey[k]
	if was == nil || was.uid != obj.GetUID() {
		return nil
	}
	r, _ := was.said.(*report)
	return r
}

// correct returns how long to wait before s may be written to obj again after another client has
// replaced it; zero if s may be written now, or if obj still has s. count is the number of
// replacements so far, or zero if the present one was counted before.
func (t *statementRecords) correct(k region.Key, obj *unstructured.Unstructured, s statement, now time.Time) (wait time.Duration, count int, _ error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.byKey[k]
	if was == nil || was.uid != obj.GetUID() || was.over == obj.GetResourceVersion() || !was.said.same(s) {
		return 0, 0, nil
	}
	desired, err := identified(obj, s)
	if err != nil || !loop.Differs(obj, desired, FieldManager, "status") {
		return 0, 0, err
	}
	if was.seen != obj.GetResourceVersion() {
		was.seen = obj.GetResourceVersion()
		was.count++
		count = was.count
	}
	return was.take(now), count, nil
}

// take returns zero if a correction may be made now, and then begins the next pause. Otherwise it
// returns how much of the pause is left.
func (t *statementRecord) take(now time.Time) time.Duration {
	if left := t.next.Sub(now); left > 0 {
		return left
	}
	if now.Sub(t.next) > maxPause {
		t.pause = 0 // the status was not replaced for long enough
	}
	t.pause = min(max(2*t.pause, minPause), maxPause)
	t.next = now.Add(t.pause)
	return 0
}

func (t *statementRecords) forget(k region.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKey, k)
}

// agrees is false for a nil s: nothing was written yet.
func (s *report) agrees(other statement) bool {
	o, ok := other.(*report)
	return ok && s != nil && s.Phase == o.Phase && s.Holder.Peer == o.Holder.Peer && s.Holder.Since.Time.Equal(o.Holder.Since.Time)
}

func (s *report) same(other statement) bool {
	o, ok := other.(*report)
	return ok && s.agrees(o) && s.ObservedGeneration == o.ObservedGeneration &&
		sameCondition(s.Conditions, o.Conditions, string(v1alpha1.RegionClaimConditionBound))
}

// agrees compares the conditions, because a gate names no holder.
func (g *gate) agrees(other statement) bool {
	o, ok := other.(*gate)
	return ok && sameCondition(g.Conditions, o.Conditions, regionBound)
}

func (g *gate) same(other statement) bool {
	o, ok := other.(*gate)
	return ok && g.agrees(o) && g.Phase == o.Phase && g.ObservedGeneration == o.ObservedGeneration
}

// sameCondition reports whether the conditions are equal apart from transition times.
func sameCondition(a, b []metav1.Condition, kind string) bool {
	one, other := meta.FindStatusCondition(a, kind), meta.FindStatusCondition(b, kind)
	if one == nil || other == nil {
		return one == other
	}
	return one.Status == other.Status && one.Reason == other.Reason && one.Message == other.Message &&
		one.ObservedGeneration == other.ObservedGeneration
}

// correct returns how long the status of a claim must stay as another client wrote it. It also
// reports a client that replaces the status repeatedly.
func (a *Arbiter) correct(ctx context.Context, k region.Key, at *peerState, s report) (time.Duration, error) {
	wait, count, err := at.peer.claimRecords.correct(k, at.claim, &s, time.Now())
	if wait > 0 {
		a.queue.AddAfter(k.String(), wait)
	}
	replaced, theirs := isReplaced(at.claim, &s), writtenIn(at.claim)
	// Without a plane, arbiters that see different peers may disagree without an error.
	if count == contradictions && s.differs(at.claim) && (replaced || a.decisions != nil) {
		by := FieldManager
		if replaced {
			by = writerOf(at.claim)
		}
		logging.From(ctx).Info("Another client keeps replacing the status of a RegionClaim; if it is an Arbiter, check whether another central plane has this peer too",
			"region", k.String(), "peer", at.peer.name, "by", by,
			"ours", s.Phase, "ourHolder", s.Holder.Peer, "theirs", theirs.Phase, "theirHolder", theirs.Holder.Peer)
		a.opts.Observer.contradicted(ctx, ContradictEvent{
			Region: k, Peer: at.peer.name, UID: at.claim.GetUID(), By: by,
			Holder: region.PeerName(s.Holder.Peer), Theirs: region.PeerName(theirs.Holder.Peer),
		})
	}
	return wait, err
}
