// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// lease is the right to write, which each heartbeat that the upstream accepts renews. A Syncer that cannot renew it may be
// cut off: what it runs is placed elsewhere meanwhile. It stops writing, and leaves all that runs as it is. When it has the
// lease again it first removes what moved away.
type lease struct {
	length time.Duration // zero: there is none, and all may be written
	wake   chan struct{} // when it begins to return

	mu       sync.Mutex
	renewed  time.Time // by this process; zero: not yet
	returns  time.Time // since when it removes what moved away; zero: it does not
	reported bool      // that it is stale
	left     int       // what is still to be removed
}

func newLease(length time.Duration) *lease {
	return &lease{length: max(0, length), wake: make(chan struct{}, 1)}
}

var errStale = errors.New("no heartbeat succeeded for too long: nothing is written until the upstream accepts one and the downstream answers")

// err returns why nothing may be written now.
func (l *lease) err() error {
	if l.length == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.staleLocked() {
		return errStale
	}
	return nil
}

func (l *lease) staleLocked() bool { return elapsed(l.renewed) >= l.length }

// elapsed is the time since t by the monotonic or by the wall clock, whichever is longer: the former stands still while a
// machine is suspended.
func elapsed(t time.Time) time.Duration { return max(time.Since(t), time.Since(t.Round(0))) }

// returning reports whether what moved away is being removed, so that nothing may be started.
func (l *lease) returning() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.returns.IsZero()
}

func (l *lease) returnsSince() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.returns
}

// away returns what the heartbeat that is about to be written says of the time before; "": nothing. last is the heartbeat
// that is there.
func (l *lease) away(last time.Time) string {
	if l.length == 0 {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.returns.IsZero() && l.left > 0:
		return fmt.Sprintf("it was cut off, and removes what moved away before anything is started: %d objects are left", l.left)
	case !l.returns.IsZero(), l.lapsedLocked(last):
		return "it was cut off, and removes what moved away before anything is started"
	}
	return ""
}

// lapsedLocked reports whether the lease was lost before now. A process that has just begun goes by the heartbeat of the one
// before, which had the same clock.
func (l *lease) lapsedLocked(last time.Time) bool {
	if l.renewed.IsZero() {
		return !last.IsZero() && elapsed(last) >= l.length
	}
	return l.staleLocked()
}

// renew begins the lease anew at the time at which the heartbeat was sent. last is the one that was there. It returns whether
// writing was not allowed before.
func (l *lease) renew(sent, last time.Time) (began bool) {
	if l.length == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	began = l.staleLocked()
	if l.lapsedLocked(last) {
		l.returns, l.left = time.Now(), 0
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	l.renewed, l.reported = sent, false
	return began
}

// since returns since when nothing is written; zero: the lease is held, or was never.
func (l *lease) since() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.length == 0 || l.renewed.IsZero() || !l.staleLocked() {
		return time.Time{}
	}
	return l.renewed.Add(l.length)
}

// reportOnce returns true once each time the lease is lost.
func (l *lease) reportOnce() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.length == 0 || l.renewed.IsZero() || !l.staleLocked() || l.reported {
		return false
	}
	l.reported = true
	return true
}

// progress records how much is left to remove. The return is over when that is known to be nothing.
func (l *lease) progress(left int, known bool) (over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left = left; left > 0 || !known {
		return false
	}
	l.returns = time.Time{}
	return true
}

// asStale makes Ready False while what moved away is being removed. last is the heartbeat that is there.
func (s *Syncer) asStale(last time.Time, unreachable error, set setCondition) setCondition {
	why := s.lease.away(last)
	if why == "" || unreachable != nil {
		return set
	}
	// What describe does not say would stay as it was.
	set(v1alpha1.SyncTargetConditionReady, metav1.ConditionFalse, v1alpha1.SyncTargetReasonStale, why)
	return func(t v1alpha1.SyncTargetConditionType, status metav1.ConditionStatus, reason v1alpha1.SyncTargetConditionReason, message string) {
		if t != v1alpha1.SyncTargetConditionReady {
			set(t, status, reason, message)
		}
	}
}

// renewLease is called after each heartbeat that was written.
func (s *Syncer) renewLease(ctx context.Context, sent, last time.Time) {
	if s.lease.renew(sent, last) {
		if s.lease.returning() {
			logging.From(ctx).Info("Writes again, and removes what moved away first")
		}
		s.resume()
	}
}

// resume asks for everything that was put off.
func (s *Syncer) resume() {
	s.mu.Lock()
	lanes := make([]*lane, 0, len(s.lanes))
	for _, l := range s.lanes {
		lanes = append(lanes, l)
	}
	s.mu.Unlock()
	for _, l := range lanes {
		l.flows()
	}
	if n := s.namespaces(); n != nil {
		n.flows()
	}
}

// waitForRemovals is how long a return waits for deletions that fail, since the last one that succeeded. It goes on waiting for
// those that the valve holds.
const waitForRemovals = 10 * time.Minute

// comeBack ends each return once nothing is left that moved away, until ctx ends.
func (s *Syncer) comeBack(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.lease.wake:
		}
		begun := s.lease.returnsSince()
		left := map[*lane]map[types.NamespacedName]bool{}
		fewest, progress := 0, begun
		for over := false; !over; {
			n, known := s.leftovers(left, begun, time.Since(progress) >= waitForRemovals)
			if fewest == 0 || n < fewest {
				fewest, progress = n, time.Now()
			}
			over = s.lease.progress(n, known)
			if over {
				logging.From(ctx).Info("What moved away is removed")
				s.resume()
				break
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(soon):
			}
		}
	}
}

// leftovers counts the downstream objects that moved away, of all types whose caches were fresh since the return began. It
// keeps them in left. known is false while there are types that may have some; after the length of the lease these are not
// waited for. stuck leaves out those whose deletion fails.
func (s *Syncer) leftovers(left map[*lane]map[types.NamespacedName]bool, begun time.Time, stuck bool) (n int, known bool) {
	late := time.Since(begun) >= s.lease.length
	s.mu.Lock()
	lanes := make([]*lane, 0, len(s.lanes))
	for _, l := range s.lanes {
		if l.kind.Refused == "" {
			lanes = append(lanes, l)
		}
	}
	s.mu.Unlock()
	known = len(lanes) > 0 || late
	for _, l := range lanes {
		if left[l] == nil {
			if l.fresh() != nil {
				known = known && late
				continue
			}
			left[l] = map[types.NamespacedName]bool{}
			for _, place := range l.down.Keys() {
				left[l][place] = true
			}
		}
		for place := range left[l] {
			if !l.isLeftover(place, begun, stuck) {
				delete(left[l], place)
			}
		}
		n += len(left[l])
	}
	return n, known
}

// isLeftover reports whether a downstream object is to be removed and its deletion has not begun. It is not one if it is kept
// until a person decides, or if its deletion was held before the return began, at since.
func (l *lane) isLeftover(place types.NamespacedName, since time.Time, stuck bool) bool {
	d, ok := l.down.Get(place)
	if !ok || d.GetDeletionTimestamp() != nil {
		return false
	}
	key, mapped := l.originAt(place)
	if !mapped {
		key = strayKey(place)
	}
	l.mu.Lock()
	problem := l.problems[key]
	l.mu.Unlock()
	switch problem.Reason {
	case ReasonForeign, ReasonCollision, ReasonNotPermitted, ReasonNotSyncable, ReasonNamespace, ReasonOriginGone, ReasonFight:
		return false
	case ReasonHeld:
		if problem.Since.Before(since) {
			return false
		}
	default:
		if stuck {
			return false
		}
	}
	u, _ := l.upstream(key)
	return u == nil || u.GetDeletionTimestamp() != nil || l.relation(d, u, l.holds(u)) == preceded
}
