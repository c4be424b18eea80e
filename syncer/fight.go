// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FightCap limits how often the syncer overwrites another client that keeps changing downstream objects. When the
// syncer has changed a field back Times times within the duration Within, it leaves the object as it is, with
// ReasonFight. It writes the object again when the object changes upstream, and after 10 minutes.
type FightCap struct {
	// Times is the number of rewrites that are allowed; zero: 5; negative: without limit.
	Times int
	// Within is the time over which rewrites are counted; zero: 5 minutes.
	Within time.Duration
}

// These are the causes of a rewrite, besides the names of the fields that another manager took over.
const (
	fieldsRemoved = "fields that were removed"
	objectDeleted = "it was deleted"
	// originReplaced: the origin had another UID than the upstream object that has its name now.
	originReplaced = "the UID of its origin"
	// changedUpstream: another client changes the upstream object of an object that was born downstream.
	changedUpstream = "another client changes it upstream"
)

// errFight means that an object is left to another client.
var errFight = errors.New("another client keeps changing it")

// fights holds the times at which one object was rewritten, by cause. A value is never modified, since copies of a
// detail share it.
type fights struct{ times map[string][]time.Time }

// add returns f with one more rewrite for each of the causes.
func (f *fights) add(now time.Time, causes ...string) *fights {
	next := &fights{times: map[string][]time.Time{}}
	if f != nil {
		maps.Copy(next.times, f.times)
	}
	for _, cause := range causes {
		next.times[cause] = append(slices.Clone(next.times[cause]), now)
	}
	return next
}

// recent returns f without the rewrites that are older than within.
func (f *fights) recent(now time.Time, within time.Duration) *fights {
	if f == nil {
		return nil
	}
	next := &fights{times: map[string][]time.Time{}}
	for cause, times := range f.times {
		times = slices.DeleteFunc(slices.Clone(times), func(t time.Time) bool { return now.Sub(t) >= within })
		if len(times) > 0 {
			next.times[cause] = times
		}
	}
	if len(next.times) == 0 {
		return nil
	}
	return next
}

// reached returns those of the causes for which the object was rewritten as often as limit allows.
func (f *fights) reached(now time.Time, limit FightCap, causes ...string) []string {
	f = f.recent(now, limit.Within)
	if f == nil || limit.Times < 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(causes), func(cause string) bool { return len(f.times[cause]) < limit.Times })
}

// rivals counts how often this syncer overwrites other clients, and reports them.
type rivals struct{ *syncedType }

// overCap returns those of the causes for which the object was rewritten as often as Options.Fights allows.
func (r rivals) overCap(of ref, causes ...string) []string {
	return r.records.get(of).fights.reached(time.Now(), r.syncer.opts.Fights, causes...)
}

// countRewrite counts one more rewrite of the object for each of the causes.
func (r rivals) countRewrite(of ref, causes ...string) {
	limit := r.syncer.opts.Fights
	if limit.Times < 0 || len(causes) == 0 {
		return
	}
	r.records.update(of, func(d *detail) { d.fights = d.fights.recent(time.Now(), limit.Within).add(time.Now(), causes...) })
}

// yield reports that the object is left to another client, and returns errFight.
func (r rivals) yield(ctx context.Context, of ref, causes []string) error {
	limit := r.syncer.opts.Fights
	r.report(ctx, of, ReasonFight, fmt.Sprintf("written again %d times within %s, and left as it is now: %s", limit.Times, limit.Within, strings.Join(causes, "; ")))
	return errFight
}

// lastWriters returns the managers other than ours that wrote a downstream object, the latest first, three at most;
// "unknown" if there are no such managers or the object cannot be read.
func (r rivals) lastWriters(ctx context.Context, place types.NamespacedName) string {
	d, err := r.down.meta(place.Namespace).Get(ctx, place.Name, metav1.GetOptions{})
	if err != nil {
		return "unknown"
	}
	entries := slices.DeleteFunc(d.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager || e.Subresource != ""
	})
	slices.SortStableFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		if a.Time == nil || b.Time == nil {
			return cmp.Compare(a.Manager, b.Manager)
		}
		return b.Time.Compare(a.Time.Time)
	})
	var names []string
	for _, e := range entries[:min(3, len(entries))] {
		names = append(names, fmt.Sprintf("%q", e.Manager))
	}
	if len(names) == 0 {
		return "unknown"
	}
	return strings.Join(names, ", ")
}
