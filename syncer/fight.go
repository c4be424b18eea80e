// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FightCap says when somebody downstream who changes again and again what the syncer has written is not overruled any
// more: if a field was changed back so many times within the time, the object is left as it is and has ReasonFight. It is
// written again when the object changes upstream, and 10 minutes later.
type FightCap struct {
	// Times is how often; zero: 5; negative: without end.
	Times int
	// Within is the time; zero: 5 minutes.
	Within time.Duration
}

// What others do beside taking fields over.
const (
	fieldsRemoved = "fields that were removed"
	copyDeleted   = "it was deleted"
	// originReplaced is of a copy that is for the object upstream that has another UID than its origin had.
	originReplaced = "the UID of its origin"
	// changedUpstream is of what was born downstream.
	changedUpstream = "somebody changes it upstream"
)

// errFight is why an object is left to somebody else.
var errFight = errors.New("somebody else changes it again and again")

// tooOften returns which of the things have made us write the object of key again as often as may be.
func (l *lane) tooOften(key types.NamespacedName, things ...string) []string {
	limit := l.syncer.opts.Fights
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(things), func(thing string) bool {
		recent := slices.DeleteFunc(l.rewrites[key][thing], func(t time.Time) bool { return time.Since(t) >= limit.Within })
		if l.rewrites[key] != nil {
			l.rewrites[key][thing] = recent
		}
		return limit.Times < 0 || len(recent) < limit.Times
	})
}

// again counts that the object of key was written once more because of each of the things.
func (l *lane) again(key types.NamespacedName, things ...string) {
	if l.syncer.opts.Fights.Times < 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rewrites[key] == nil {
		l.rewrites[key] = map[string][]time.Time{}
	}
	for _, thing := range things {
		l.rewrites[key][thing] = append(l.rewrites[key][thing], time.Now())
	}
}

// yield leaves the object of key to somebody.
func (l *lane) yield(ctx context.Context, key types.NamespacedName, what []string) error {
	limit := l.syncer.opts.Fights
	l.problem(ctx, key, ReasonFight, fmt.Sprintf("written again %d times within %s, and left as it is now: %s", limit.Times, limit.Within, strings.Join(what, "; ")))
	return errFight
}

// lastWriters names who has written an object downstream, the last ones first.
func (l *lane) lastWriters(ctx context.Context, place types.NamespacedName) string {
	d, err := l.downMeta(place.Namespace).Get(ctx, place.Name, metav1.GetOptions{})
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
