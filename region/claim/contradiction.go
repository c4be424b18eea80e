// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// Somebody who replaces what a claim was told, without a new decision, decides otherwise:
// the arbiters of another central plane, which has the same peer. Neither knows of the
// other, and each would have the last word, without end. So the status is written again a
// few times, as it has to be after a backup or a mistake, and then once in a while. The
// same holds of two arbiters without a plane, one of which does not reach every peer.
const (
	contradictions = 3
	insistence     = 5 * time.Minute
)

// telling is what a claim was told last.
type telling struct {
	uid    types.UID
	over   string // the resourceVersion that it was written over
	report report
	budget loop.Budget
	seen   string // the resourceVersion of the last contradiction
	count  int    // of contradictions
}

// tellings are those of one peer.
type tellings struct {
	mu    sync.Mutex
	byKey map[region.Key]*telling
}

// told notes what obj was told.
func (t *tellings) told(k region.Key, obj *unstructured.Unstructured, s report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.byKey[k]
	if before == nil || before.uid != obj.GetUID() || !before.report.agrees(s) {
		before = &telling{uid: obj.GetUID(), budget: loop.NewBudget(contradictions, insistence)}
	}
	if t.byKey == nil {
		t.byKey = map[region.Key]*telling{}
	}
	before.over, before.report = obj.GetResourceVersion(), s
	t.byKey[k] = before
}

// last is what the claim of that UID was told; nil if it was not.
func (t *tellings) last(k region.Key, uid types.UID) *report {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was := t.byKey[k]; was != nil && was.uid == uid {
		return new(was.report)
	}
	return nil
}

// insist says how long to wait before obj is told s again; zero: it may be told at once.
// news says that it has been contradicted too often for a mistake.
func (t *tellings) insist(k region.Key, obj *unstructured.Unstructured, s report, now time.Time) (wait time.Duration, news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.byKey[k]
	if was == nil || was.uid != obj.GetUID() || was.over == obj.GetResourceVersion() || !was.report.agrees(s) || !s.differs(obj) {
		return 0, false
	}
	if was.seen != obj.GetResourceVersion() {
		was.seen = obj.GetResourceVersion()
		was.count++
		news = was.count == contradictions
	}
	return was.budget.Take(now), news
}

func (t *tellings) forget(k region.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKey, k)
}

// agrees says whether both say the same about who holds the region.
func (s report) agrees(other report) bool {
	return s.Phase == other.Phase && s.Holder.Peer == other.Holder.Peer && s.Holder.Since.Time.Equal(other.Holder.Since.Time)
}

// leaves says whether the status of a claim stays for now as somebody else has it.
func (a *Arbiter) leaves(ctx context.Context, k region.Key, at *place, s report) bool {
	wait, news := at.peer.tellings.insist(k, at.claim, s, time.Now())
	if wait > 0 {
		a.queue.AddAfter(k.String(), wait)
	}
	if news && a.decisions != nil {
		theirs := statusIn(at.claim)
		logr.FromContextOrDiscard(ctx).Info("Somebody else decides about a RegionClaim otherwise: is its peer registered in another central plane?",
			"region", k.String(), "peer", at.peer.name, "ours", s.Phase, "ourHolder", s.Holder.Peer, "theirs", theirs.Phase, "theirHolder", theirs.Holder.Peer)
		a.opts.Observer.contradicted(ctx, ContradictEvent{
			Region: k, Peer: at.peer.name, UID: at.claim.GetUID(),
			Holder: region.PeerName(s.Holder.Peer), Theirs: region.PeerName(theirs.Holder.Peer),
		})
	}
	return wait > 0
}
