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

// Somebody who replaces what an object was told, without a new decision, may do so again
// and again: the arbiters of another central plane, which has the same peer and decides
// otherwise, or any other controller. Neither would have the last word. So each
// correction is followed by a pause, twice as long as the one before it, until nobody
// has contradicted for a while.
const (
	contradictions = 3 // are no mistake any more
	minPause       = time.Second
	maxPause       = 5 * time.Minute
)

// statement is what an object is told: a report or a gate.
type statement interface {
	// same says whether the other says the same, whenever that is.
	same(other statement) bool
	// agrees says whether both say the same about who holds the region.
	agrees(other statement) bool
}

// telling is what an object was told last.
type telling struct {
	uid   types.UID
	over  string // the resourceVersion that it was written over
	said  statement
	pause time.Duration // after the last correction
	next  time.Time     // when it ends
	seen  string        // the resourceVersion of the last contradiction
	count int           // of contradictions
}

// tellings are those of one kind of one peer.
type tellings struct {
	mu    sync.Mutex
	byKey map[region.Key]*telling
}

// told notes what obj was told.
func (t *tellings) told(k region.Key, obj *unstructured.Unstructured, s statement) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.byKey[k]
	if was == nil || was.uid != obj.GetUID() || !was.said.agrees(s) {
		was = &telling{uid: obj.GetUID()}
	}
	if t.byKey == nil {
		t.byKey = map[region.Key]*telling{}
	}
	was.over, was.said = obj.GetResourceVersion(), s
	t.byKey[k] = was
}

// report is what the RegionClaim obj was told; nil if nothing.
func (t *tellings) report(k region.Key, obj *unstructured.Unstructured) *report {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.byKey[k]
	if was == nil || was.uid != obj.GetUID() {
		return nil
	}
	r, _ := was.said.(*report)
	return r
}

// correct says how long to wait before obj is told s again because somebody has replaced
// it; zero: it may be told at once, or has it. count is how often that happened, if this
// is the first look at it.
func (t *tellings) correct(k region.Key, obj *unstructured.Unstructured, s statement, now time.Time) (wait time.Duration, count int, _ error) {
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

// take returns zero if there may be a correction now, or else how long to wait.
func (t *telling) take(now time.Time) time.Duration {
	if left := t.next.Sub(now); left > 0 {
		return left
	}
	if now.Sub(t.next) > maxPause {
		t.pause = 0 // nobody has contradicted for long
	}
	t.pause = min(max(2*t.pause, minPause), maxPause)
	t.next = now.Add(t.pause)
	return 0
}

func (t *tellings) forget(k region.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKey, k)
}

func (s *report) agrees(other statement) bool {
	o, ok := other.(*report)
	return ok && s.Phase == o.Phase && s.Holder.Peer == o.Holder.Peer && s.Holder.Since.Time.Equal(o.Holder.Since.Time)
}

func (s *report) same(other statement) bool {
	o, ok := other.(*report)
	return ok && s.agrees(o) && s.ObservedGeneration == o.ObservedGeneration &&
		sameCondition(s.Conditions, o.Conditions, string(v1alpha1.RegionClaimConditionBound))
}

// A gate that others open and close is told each time which it is to be.
func (g *gate) agrees(other statement) bool {
	o, ok := other.(*gate)
	return ok && sameCondition(g.Conditions, o.Conditions, regionBound)
}

func (g *gate) same(other statement) bool {
	o, ok := other.(*gate)
	return ok && g.agrees(o) && g.Phase == o.Phase && g.ObservedGeneration == o.ObservedGeneration
}

// sameCondition says whether both have the same to say in a condition, since whenever.
func sameCondition(a, b []metav1.Condition, kind string) bool {
	one, other := meta.FindStatusCondition(a, kind), meta.FindStatusCondition(b, kind)
	if one == nil || other == nil {
		return one == other
	}
	return one.Status == other.Status && one.Reason == other.Reason && one.Message == other.Message &&
		one.ObservedGeneration == other.ObservedGeneration
}

// correct says how long the status of a claim stays as somebody else has it. It tells of
// one who replaces it again and again.
func (a *Arbiter) correct(ctx context.Context, k region.Key, at *place, s report) (time.Duration, error) {
	wait, count, err := at.peer.tellings.correct(k, at.claim, &s, time.Now())
	if wait > 0 {
		a.queue.AddAfter(k.String(), wait)
	}
	replaced, theirs := isReplaced(at.claim, &s), writtenIn(at.claim)
	// Without a plane, arbiters that know different peers are no mistake to be found out.
	if count == contradictions && s.differs(at.claim) && (replaced || a.decisions != nil) {
		by := FieldManager
		if replaced {
			by = writerOf(at.claim)
		}
		logging.From(ctx).Info("Somebody else writes the status of a RegionClaim; if that is an Arbiter, is its peer registered in another central plane?",
			"region", k.String(), "peer", at.peer.name, "by", by,
			"ours", s.Phase, "ourHolder", s.Holder.Peer, "theirs", theirs.Phase, "theirHolder", theirs.Holder.Peer)
		a.opts.Observer.contradicted(ctx, ContradictEvent{
			Region: k, Peer: at.peer.name, UID: at.claim.GetUID(), By: by,
			Holder: region.PeerName(s.Holder.Peer), Theirs: region.PeerName(theirs.Holder.Peer),
		})
	}
	return wait, err
}
