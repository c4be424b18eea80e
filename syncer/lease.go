// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// lease is the right to write. While the downstream is reachable, each heartbeat that the upstream accepts renews the
// lease. So does each attempt that finds no SyncTarget. A new process may not write before its own first renewal. A
// Syncer that cannot renew the lease may be cut off, and its workloads may be placed elsewhere: the Syncer stops
// writing, and stops no workload. When the Syncer has the lease again, a return begins: before it creates or changes
// anything downstream, the Syncer deletes the objects that moved away.
type lease struct {
	length time.Duration // zero: no lease, all writes are allowed
	wake   chan struct{} // receives when a return begins

	mu          sync.Mutex
	renewed     time.Time // the last renewal by this process; zero: not yet
	returnBegun time.Time // when the return began; zero: there is no return
	reported    bool      // the loss of the lease was reported
	left        int       // how many objects the return still has to delete
}

func newLease(length time.Duration) *lease {
	return &lease{length: max(0, length), wake: make(chan struct{}, 1)}
}

var errStale = errors.New("no heartbeat succeeded for too long: nothing is written until the upstream accepts one and the downstream is reachable")

// err returns an error if nothing may be written now.
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

// elapsed returns the time since t by the monotonic or by the wall clock, whichever is longer. The monotonic clock
// stands still while a machine is suspended.
func elapsed(t time.Time) time.Duration { return max(time.Since(t), time.Since(t.Round(0))) }

// returning reports whether a return is in progress: the syncer deletes the objects that moved away, and may create
// and change nothing downstream.
func (l *lease) returning() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.returnBegun.IsZero()
}

func (l *lease) returnsSince() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.returnBegun
}

// returnMessage returns the message of the condition Ready if a return is in progress, or begins with the heartbeat
// that is about to be written. Otherwise it returns "". last is the heartbeat that the SyncTarget has; zero if it has
// none.
func (l *lease) returnMessage(last time.Time) string {
	if l.length == 0 {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.returnBegun.IsZero() && l.left > 0:
		return fmt.Sprintf("it was cut off: it deletes the objects that moved away before it starts any: %d are left", l.left)
	case !l.returnBegun.IsZero(), l.lapsedLocked(last):
		return "it was cut off: it deletes the objects that moved away before it starts any"
	}
	return ""
}

// lapsedLocked reports whether the lease was lost, so that a return is necessary. A process that has renewed the lease
// decides by its own last renewal. A process that has not renewed it yet decides by last, the heartbeat that its
// predecessor wrote (zero without a predecessor), and compares it with its own clock. This assumes that both processes have
// the same clock. Even if last is recent, a new process may not write before its own first renewal.
func (l *lease) lapsedLocked(last time.Time) bool {
	if l.renewed.IsZero() {
		return !last.IsZero() && elapsed(last) >= l.length
	}
	return l.staleLocked()
}

// renew renews the lease. The lease then runs from the time sent, at which the accepted heartbeat was sent, or the
// attempt that found no SyncTarget. If the lease was lost, renew begins a return: the Syncer deletes the objects that
// moved away before it creates or changes others. For last see lapsedLocked. renew reports whether writes
// were blocked until now. That is always the case at the first renewal of a process, and never without a lease.
func (l *lease) renew(sent, last time.Time) (began bool) {
	if l.length == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	began = l.staleLocked()
	if l.lapsedLocked(last) {
		l.returnBegun, l.left = time.Now(), 0
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	l.renewed, l.reported = sent, false
	return began
}

// since returns the time at which writing stopped; zero if the lease is held, was never held, or does not exist.
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

// progress records how many objects are left to delete. If known is true and left is zero, it ends the return and
// returns true.
func (l *lease) progress(left int, known bool) (over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left = left; left > 0 || !known {
		return false
	}
	l.returnBegun = time.Time{}
	return true
}

// describe sets the condition Ready to False while a return is in progress or about to begin, unless the downstream is
// unreachable. It returns the func that sets the other conditions. last is the heartbeat that the SyncTarget has.
func (l *lease) describe(last time.Time, unreachable error, set synctarget.SetCondition) synctarget.SetCondition {
	why := l.returnMessage(last)
	if why == "" || unreachable != nil {
		return set
	}
	// Ready is set here. So the returned func ignores it.
	set(v1alpha1.SyncTargetConditionReady, metav1.ConditionFalse, v1alpha1.SyncTargetReasonStale, why)
	return func(t v1alpha1.SyncTargetConditionType, status metav1.ConditionStatus, reason v1alpha1.SyncTargetConditionReason, message string) {
		if t != v1alpha1.SyncTargetConditionReady {
			set(t, status, reason, message)
		}
	}
}
