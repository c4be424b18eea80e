// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// versions are the states of one object in the caches one, many and down, by the numbers that the caches give them; 0:
// absent.
type versions struct {
	one, many, down uint64
	autoscaled      bool // an autoscaler sets the replicas of the object
}

// record is the memory of a controller about one object between two reconciles. A new process starts without records.
type record struct {
	settled versions // the versions at the last reconcile, if it left nothing to do; else zero
	*detail          // nil: empty, as for most objects at rest
}

// detail is the part of a record that is empty for most objects at rest. It is comparable.
type detail struct {
	writes  writes
	problem Problem // no problem if it has no Reason
	fights  *fights // nil: none
	// spec and status count how often the same content was written again after another client had written other
	// content.
	spec, status rewritten
	downstream   lastSeen // with DeleteUpstream only
	appeared     bool     // a watch has just shown the downstream object for the first time
	// unscheduled is the desired text of the annotation upstream about pods without a node, and published is its
	// present text: see Options.Unscheduled.
	unscheduled, published string
}

// records are the records of one type. They are safe for concurrent use.
type records struct {
	deleteUpstream bool // the field downstream of each detail is recorded

	mu                  sync.Mutex
	all                 map[ref]record
	unscheduledKnown    bool // the field unscheduled of each detail is known
	noPlaceForCondition bool // the type has no place for our condition
}

func newRecords(opts Options) *records {
	// Without Options.Unscheduled the desired text is known: it is empty. So texts of an earlier process are
	// removed.
	return &records{deleteUpstream: opts.OnDownstreamDelete == DeleteUpstream, all: map[ref]record{}, unscheduledKnown: opts.Unscheduled <= 0}
}

// get returns a copy of the detail of an object.
func (r *records) get(of ref) detail {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.getLocked(of)
}

func (r *records) getLocked(of ref) detail {
	if d := r.all[of].detail; d != nil {
		return *d
	}
	return detail{}
}

// update changes the detail of an object.
func (r *records) update(of ref, change func(*detail)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updateLocked(of, change)
}

func (r *records) updateLocked(of ref, change func(*detail)) {
	before := r.getLocked(of)
	d := before
	if change(&d); d == before {
		return
	}
	rec := record{settled: r.all[of].settled}
	if d != (detail{}) {
		rec.detail = &d
	}
	r.setLocked(of, rec)
}

func (r *records) setLocked(of ref, rec record) {
	if rec == (record{}) {
		delete(r.all, of)
		return
	}
	r.all[of] = rec
}

// settle records that a reconcile has read the given versions and left nothing to do. An object with a problem is
// never settled.
func (r *records) settle(of ref, at versions) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settleLocked(of, at)
}

func (r *records) settleLocked(of ref, at versions) {
	rec := r.all[of]
	if rec.settled = at; rec.detail != nil && rec.problem.Reason != "" {
		rec.settled = versions{}
	}
	r.setLocked(of, rec)
}

// hadDownstream reports whether an object had a downstream object when it was last settled.
func (r *records) hadDownstream(of ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[of].settled.down != 0
}

// forget drops the record of an object that neither side has any longer, except its problem, the count of its pods, and
// the note that its downstream object has just appeared.
func (r *records) forget(of ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.getLocked(of)
	delete(r.all, of)
	r.updateLocked(of, func(now *detail) {
		now.problem, now.appeared, now.unscheduled = d.problem, d.appeared, d.unscheduled
	})
}

// dropAppeared records that a reconcile has handled the appearance of the downstream object. Each reconcile calls it.
// For objects at rest it therefore changes and allocates nothing.
func (r *records) dropAppeared(of ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.all[of].detail; d != nil && d.appeared {
		r.updateLocked(of, func(d *detail) { d.appeared = false })
	}
}

// due returns how long to wait until a reconcile can do something: 0 if it can now, negative if there is nothing to
// do. now, up and down are the versions that the caches show, see caches.versions. Most reconciles end here, including
// those that our own writes cause.
func (r *records) due(of ref, now versions, up, down string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.getLocked(of)
	published := r.publishedLocked(d)
	if published && r.all[of].settled == now && now != (versions{}) {
		return -1
	}
	if wait := d.writes.upstream.waitAny(up); wait > 0 {
		return wait // our own write has replaced the state that the cache shows
	}
	made := d.writes.created
	if !published || made == (created{}) || up != made.before && up != made.up || down != "" && down != made.down {
		return 0
	}
	if up == made.up && down == made.down {
		r.settleLocked(of, now)
		r.updateLocked(of, func(d *detail) {
			d.writes = writes{}
			r.noteDownstream(d, made.uid, "")
		})
		return -1
	}
	return max(0, time.Until(made.until))
}

// setProblem records the problem of an object, and reports whether it has changed. An empty reason clears it.
func (r *records) setProblem(of ref, reason Reason, message string) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.getLocked(of).problem
	if before.Reason == reason && before.Message == message {
		return false
	}
	next := Problem{}
	if reason != "" {
		next = Problem{Object: of.NamespacedName, Reason: reason, Message: message, Since: time.Now()}
		if before.Reason == reason {
			next.Since = before.Since
		}
	}
	r.updateLocked(of, func(d *detail) { d.problem = next })
	return true
}

// problems returns all problems, sorted by namespace and name.
func (r *records) problems() []Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Problem
	for _, rec := range r.all {
		if rec.detail != nil && rec.problem.Reason != "" {
			all = append(all, rec.problem)
		}
	}
	slices.SortFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	return all
}

// withoutConditions reports whether the type has no place for our condition.
func (r *records) withoutConditions() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.noPlaceForCondition
}

// dropConditions records that the type has no place for our condition.
func (r *records) dropConditions() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noPlaceForCondition = true
}

// dropRewritten drops the counts of rewrites that are older than within.
func (r *records) dropRewritten(within time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of, rec := range r.all {
		if rec.detail == nil || rec.spec == (rewritten{}) && rec.status == (rewritten{}) {
			continue
		}
		r.updateLocked(of, func(d *detail) { d.spec, d.status = d.spec.recent(within), d.status.recent(within) })
	}
}

// publishedLocked reports whether the upstream has the last count of an object's pods. It also returns true if no count
// is known yet.
func (r *records) publishedLocked(d detail) bool {
	return !r.unscheduledKnown || d.unscheduled == d.published
}

// setUnscheduled records the counts of the pods of all objects of the type. It returns the objects whose published
// text must change: the number of pods differs, or the message differs in more than numbers.
func (r *records) setUnscheduled(counted map[types.NamespacedName]v1alpha1.Unscheduled) []ref {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unscheduledKnown = true
	var differ []ref
	for of, rec := range r.all {
		if _, some := counted[of.NamespacedName]; some || rec.detail == nil || of.role != asOrigin {
			continue
		}
		if rec.published != "" {
			differ = append(differ, of)
		}
		r.updateLocked(of, func(d *detail) { d.unscheduled = "" })
	}
	for key, now := range counted {
		of := originRef(key)
		text := r.getLocked(of).published
		if !sameCount(text, now) {
			data, _ := json.Marshal(now) // cannot fail: a number and a string
			text = string(data)
			differ = append(differ, of)
		}
		r.updateLocked(of, func(d *detail) { d.unscheduled = text })
	}
	return differ
}

// unpublished records that the annotation of the upstream object has text, and returns the text that it is to have
// instead. ok is false if the two texts are the same, or if nothing was counted yet.
func (r *records) unpublished(of ref, text string) (next string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updateLocked(of, func(d *detail) {
		d.published = text
		var counted v1alpha1.Unscheduled
		if d.unscheduled != "" && json.Unmarshal([]byte(d.unscheduled), &counted) == nil && sameCount(text, counted) {
			d.unscheduled = text // the last count differs from text in numbers of the message only: no write is needed
		}
	})
	d := r.getLocked(of)
	return d.unscheduled, !r.publishedLocked(d)
}

// lastSeen is the record about a downstream object, with DeleteUpstream only.
type lastSeen struct {
	of      types.UID // the upstream object whose downstream object was in place, with the desired spec
	deleted types.UID // the downstream object that the syncer itself has deleted: its absence proves nothing
}

// noteDownstream records in d that the upstream object with the UID up had a downstream object, with the UID down. It
// records nothing if the syncer itself has deleted this downstream object. down is empty if the syncer cannot have
// deleted it.
func (r *records) noteDownstream(d *detail, up, down types.UID) {
	if !r.deleteUpstream || down != "" && d.downstream.deleted == down {
		return
	}
	d.downstream = lastSeen{of: up}
}

// seeDownstream does the same as noteDownstream, for a caller that does not have the detail.
func (r *records) seeDownstream(of ref, up, down types.UID) {
	if r.deleteUpstream {
		r.update(of, func(d *detail) { r.noteDownstream(d, up, down) })
	}
}

// dropDownstream drops the record that an object has a downstream object. deleted is the UID of the downstream object
// if the syncer itself deletes it, and empty otherwise.
func (r *records) dropDownstream(of ref, deleted types.UID) {
	if r.deleteUpstream {
		r.update(of, func(d *detail) { d.downstream = lastSeen{deleted: deleted} })
	}
}
