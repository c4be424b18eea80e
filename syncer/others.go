// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// rememberOthers is how long a sign of another Syncer counts.
const rememberOthers = 10 * time.Minute

// others collects signs that another Syncer works for the same target. It needs no object of its own: the signs are in what
// both write.
type others struct {
	mu       sync.Mutex
	beats    []int64     // the last heartbeats that this process has sent, in seconds since 1970
	foreign  []time.Time // when a heartbeat of another process was read
	message  string      // of the last sign
	at       time.Time   // when that was
	reported string      // the message that the Observer got
}

// beat records a heartbeat that this process sends.
func (o *others) beat(at metav1.Time) {
	const last = 3 // of some no answer may have come
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beats = append(o.beats, at.Unix())
	o.beats = o.beats[max(0, len(o.beats)-last):]
}

// heard judges the heartbeat that is in the SyncTarget, and reports whether another process must have written it. One alone
// may be the last of a process that has ended.
func (o *others) heard(at *metav1.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.beats) == 0 || at == nil || slices.Contains(o.beats, at.Unix()) {
		return false
	}
	o.foreign = slices.DeleteFunc(append(o.foreign, time.Now()), func(t time.Time) bool { return time.Since(t) >= rememberOthers })
	return len(o.foreign) > 1
}

func (o *others) notice(message string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.message, o.at = message, time.Now()
}

// now returns the message of the last sign, "" if it was too long ago, and when it was.
func (o *others) now() (message string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.at) >= rememberOthers {
		return "", o.at
	}
	return o.message, o.at
}

// changed returns the present message, and whether a Syncer was noticed, or is no longer, since the last call.
func (o *others) changed() (message string, changed bool) {
	message, _ = o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	changed = (message == "") != (o.reported == "")
	o.reported = message
	return message, changed
}

// noticeAnother records a sign of another Syncer, and tells the Observer of the first one.
func (s *Syncer) noticeAnother(ctx context.Context, sign string) {
	if s.dry {
		return
	}
	s.others.notice(fmt.Sprintf("%s: another syncer works for target %s; this one, instance %s, syncs to the cluster whose kube-system has UID %s: stop one of the two",
		sign, s.opts.Target, s.instance, s.downUID()))
	s.reportOthers(ctx)
}

// watchOthers forgets old signs, and tells the Observer if there are none left.
func (s *Syncer) watchOthers(ctx context.Context) {
	s.mu.Lock()
	lanes := slices.Collect(maps.Values(s.lanes))
	s.mu.Unlock()
	for _, l := range lanes {
		l.forgetWritten()
	}
	s.reportOthers(ctx)
}

// reportOthers tells the Observer if another Syncer was noticed, or is no longer.
func (s *Syncer) reportOthers(ctx context.Context) {
	message, changed := s.others.changed()
	if !changed {
		return
	}
	if message != "" {
		logging.From(ctx).Info("Another syncer works for the same target", "reason", message)
	}
	s.opts.Observer.another(ctx, AnotherEvent{Message: message})
}

// describeAnother says in a condition whether another Syncer works for the target. Where none ever was noticed there is no
// such condition. Both write it, so the one that has noticed nothing yet leaves it as it is for a while.
func (s *Syncer) describeAnother(now *v1alpha1.SyncTargetStatus, set setCondition) {
	message, at := s.others.now()
	switch {
	case message != "":
		set(v1alpha1.SyncTargetConditionAnotherSyncer, metav1.ConditionTrue, v1alpha1.SyncTargetReasonNoticed, message)
	case isTrue(now, v1alpha1.SyncTargetConditionAnotherSyncer) && time.Since(s.begun) >= rememberOthers && time.Since(at) >= rememberOthers:
		set(v1alpha1.SyncTargetConditionAnotherSyncer, metav1.ConditionFalse, v1alpha1.SyncTargetReasonNotNoticed, "")
	}
}

// rewritten is what was last written of one object, and how often the same was written because another client had put
// something else there.
type rewritten struct {
	hash    string
	version string // of the object after that
	at      time.Time
	times   int
}

// part is the spec or the status of an object.
type part struct {
	types.NamespacedName
	status bool
}

// recurs returns how often what has that hash was written already because another client had put something else in its
// place, this time included. It is 0 for what this process has not written last, and while the cache, which shows the object
// at a version, is behind that write.
func (l *lane) recurs(p part, hash, shown string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.rewritten[p]
	if last.hash != hash || time.Since(last.at) >= l.syncer.opts.Fights.Within {
		return 0
	}
	if order, err := resourceversion.CompareResourceVersion(shown, last.version); err == nil && order < 0 {
		return 0
	}
	return last.times + 1
}

// written records that what has that hash is in place now: the object was shown at one version and has another since.
func (l *lane) written(p part, hash, shown, after string) {
	times := l.recurs(p, hash, shown)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rewritten == nil {
		l.rewritten = map[part]rewritten{}
	}
	l.rewritten[p] = rewritten{hash: hash, version: after, at: time.Now(), times: times}
}

// forgetWritten forgets what was written long ago.
func (l *lane) forgetWritten() {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.rewritten, func(_ part, r rewritten) bool { return time.Since(r.at) >= l.syncer.opts.Fights.Within })
	if len(l.rewritten) == 0 {
		l.rewritten = nil
	}
}

// contested returns an error if another Syncer goes on to write d, whose ledger only syncers of this target write. The first
// time it is noticed and d is written again, so that the other one can notice it too; then d is left alone.
func (l *lane) contested(ctx context.Context, key types.NamespacedName, d *unstructured.Unstructured, hash string) error {
	theirs := d.GetAnnotations()[appliedAnnotation]
	if theirs == "" || theirs == hash || !loop.OwnsPath(d, manager, "metadata", "annotations", appliedAnnotation) {
		return nil
	}
	times := l.recurs(part{NamespacedName: key}, hash, d.GetResourceVersion())
	if times == 0 {
		return nil
	}
	what := fmt.Sprintf("%s %s downstream was written with another content than this syncer's", l.name, key)
	l.syncer.noticeAnother(ctx, what)
	if times == 1 || l.syncer.opts.Fights.Times < 0 {
		return nil
	}
	l.problem(ctx, key, ReasonAnotherSyncer, what+": another syncer works for target "+l.syncer.opts.Target+": the object is left as it is: stop one of the two")
	return errFight
}

// statusContested returns why a status is not written again: another client goes on to overwrite it. "" if it is.
func (l *lane) statusContested(key types.NamespacedName, hash, shown string) string {
	limit := l.syncer.opts.Fights
	if limit.Times < 0 || l.recurs(part{key, true}, hash, shown) < limit.Times {
		return ""
	}
	return fmt.Sprintf("the status was written again %d times within %s, and is left as it is now: another syncer of target %s or another client upstream overwrites it", limit.Times, limit.Within, l.syncer.opts.Target)
}

// appeared records that a watch shows a copy for the first time. One of an origin that the upstream never had was made by
// another Syncer, or by a tool that restores objects with all their annotations.
func (l *lane) appeared(place types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fromWatch == nil {
		l.fromWatch = map[types.NamespacedName]bool{}
	}
	l.fromWatch[place] = true
}

// looked forgets that a copy has just appeared.
func (l *lane) looked(place types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.fromWatch, place)
}

// noticeStranger takes a copy that has just appeared and has no origin for a sign of another Syncer.
func (l *lane) noticeStranger(ctx context.Context, d *unstructured.Unstructured, fact string) {
	l.mu.Lock()
	stranger := l.fromWatch[loop.KeyOf(d)]
	l.mu.Unlock()
	if stranger {
		l.syncer.noticeAnother(ctx, fmt.Sprintf("%s %s appeared downstream with the marks of this target, and %s", l.name, loop.KeyOf(d), fact))
	}
}
