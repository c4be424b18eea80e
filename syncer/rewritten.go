// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/atoll-dev/atoll/internal/loop"
)

// rewritten is the last write of the spec or the status of one object, and how often the same content was written
// again after another client had written other content. It is a value: its methods return changed copies.
type rewritten struct {
	hash    string
	version string    // of the object after the write
	at      time.Time // of the last write, answered or not
	times   int
	// unanswered are the hashes of the last contents whose write got no answer. The server may still apply them.
	unanswered [3]string
}

// recent returns r, or nothing if the write is older than within.
func (r rewritten) recent(within time.Duration) rewritten {
	if time.Since(r.at) >= within {
		return rewritten{}
	}
	return r
}

// recurs returns how often, including this write, the content with that hash is written after another client had
// written other content. It is 0 if the last write of this process had other content or is older than within. It is
// also 0 if the cache, which shows the object in the version shown, does not show the last write yet.
func (r rewritten) recurs(hash, shown string, within time.Duration) int {
	if r = r.recent(within); r.hash != hash {
		return 0
	}
	if order, err := resourceversion.CompareResourceVersion(shown, r.version); err == nil && order < 0 {
		return 0
	}
	return r.times + 1
}

// next returns r after a write of content with that hash. shown is the version of the object that the cache showed at
// the write, and after the version that the write made.
func (r rewritten) next(hash, shown, after string, within time.Duration) rewritten {
	return rewritten{hash: hash, version: after, at: time.Now(), times: r.recurs(hash, shown, within), unanswered: r.unanswered}
}

// lost returns r after a write of content with that hash that got no answer.
func (r rewritten) lost(hash string) rewritten {
	copy(r.unanswered[1:], r.unanswered[:])
	r.unanswered[0], r.at = hash, time.Now()
	return r
}

// countSpec records that the spec with that hash was written downstream.
func (r rivals) countSpec(of ref, hash, shown, after string) {
	r.records.update(of, func(d *detail) { d.spec = d.spec.next(hash, shown, after, r.syncer.opts.Fights.Within) })
}

// countLost records that a write downstream of the spec with that hash got no answer.
func (r rivals) countLost(of ref, hash string) {
	r.records.update(of, func(d *detail) { d.spec = d.spec.lost(hash) })
}

// contested returns errFight if another Syncer keeps writing d: only syncers of this target write the annotation
// with the hash of the applied content. At the first sign, d is written once more, so that the other Syncer gets a
// sign too. After that, d is left alone.
func (r rivals) contested(ctx context.Context, of ref, d *unstructured.Unstructured, hash string) error {
	theirs := d.GetAnnotations()[appliedAnnotation]
	if theirs == "" || theirs == hash || !loop.OwnsPath(d, manager, "metadata", "annotations", appliedAnnotation) {
		return nil
	}
	limit, spec := r.syncer.opts.Fights, r.records.get(of).spec
	if slices.Contains(spec.unanswered[:], theirs) {
		return nil // a late write of this Syncer
	}
	times := spec.recurs(hash, d.GetResourceVersion(), limit.Within)
	if times == 0 {
		return nil
	}
	sign := fmt.Sprintf("%s %s downstream was written with another content than this syncer's", r.name, of.NamespacedName)
	r.syncer.otherSyncers.notice(ctx, sign)
	if times == 1 || limit.Times < 0 {
		return nil
	}
	r.report(ctx, of, ReasonAnotherSyncer, sign+": another syncer works for target "+r.syncer.opts.Target+": the object is left as it is: stop one of the two")
	return errFight
}

// contestedStatus returns why a status is not written again: another client keeps overwriting it. It returns "" if the
// status is to be written.
func (r rivals) contestedStatus(of ref, hash, shown string) string {
	limit := r.syncer.opts.Fights
	if limit.Times < 0 || r.records.get(of).status.recurs(hash, shown, limit.Within) < limit.Times {
		return ""
	}
	return fmt.Sprintf("the status was written again %d times within %s, and is left as it is now: another syncer of target %s or another client upstream overwrites it", limit.Times, limit.Within, r.syncer.opts.Target)
}

// noticeUnknownOrigin records a sign of another Syncer if a watch has just shown a downstream object for the first
// time, and the object has no origin. A tool that restores objects with all annotations gives the same sign.
func (r rivals) noticeUnknownOrigin(ctx context.Context, of ref, d *unstructured.Unstructured, fact string) {
	if r.records.get(of).appeared {
		r.syncer.otherSyncers.notice(ctx, fmt.Sprintf("%s %s appeared downstream with the marks of this target, and %s", r.name, loop.KeyOf(d), fact))
	}
}
