// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// place is where an object is within its source.
type place struct{ namespace, name string }

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// entry is what a ledger remembers of a delivered object: enough to know it again, and to tell of its end.
type entry struct {
	uid    types.UID
	rv     string
	print  uint64
	labels map[string]string
	pass   uint64 // the last pass that saw it
}

// change is an event that the consumer of a source lacks.
type change struct {
	kind   watch.EventType
	at     place
	object *unstructured.Unstructured // nil if only its entry is known
	entry  entry                      // after the event; before it, of a DELETED
}

// ledger is what the consumer of one source holds: the events that were delivered, summed up. It says which events would
// bring the consumer to another state, and takes note of those that were delivered, so that each is delivered once. It
// does no I/O and is not safe for concurrent use.
type ledger struct {
	seed  uint64
	known map[place]entry
	sum   uint64 // of the fingerprints of all that is known
	pass  uint64
}

func newLedger(seed uint64) *ledger { return &ledger{seed: seed, known: map[place]entry{}} }

func (l *ledger) entry(o *unstructured.Unstructured) (place, entry) {
	e := entry{uid: o.GetUID(), rv: o.GetResourceVersion(), print: fingerprint(l.seed, o.Object), labels: o.GetLabels()}
	return place{o.GetNamespace(), o.GetName()}, e
}

// event returns what an event of the source means to the consumer: nothing if it is known already, two changes if the
// object took another's place.
func (l *ledger) event(kind watch.EventType, o *unstructured.Unstructured) []change {
	if kind != watch.Deleted {
		return l.object(o)
	}
	at := place{o.GetNamespace(), o.GetName()}
	before, ok := l.known[at]
	if !ok || before.uid != o.GetUID() {
		return nil
	}
	return []change{{kind: watch.Deleted, at: at, object: o, entry: before}}
}

// object returns the changes after which the consumer holds o as it is.
func (l *ledger) object(o *unstructured.Unstructured) []change {
	at, now := l.entry(o)
	now.pass = l.pass
	before, ok := l.known[at]
	switch {
	case !ok:
		return []change{{kind: watch.Added, at: at, object: o, entry: now}}
	case before.uid != now.uid:
		return []change{{kind: watch.Deleted, at: at, entry: before}, {kind: watch.Added, at: at, object: o, entry: now}}
	case before.rv == now.rv && before.print == now.print:
		before.pass = l.pass
		l.known[at] = before
		return nil
	default:
		return []change{{kind: watch.Modified, at: at, object: o, entry: now}}
	}
}

// hold notes that the consumer holds o as it is. It returns true.
func (l *ledger) hold(o *unstructured.Unstructured) bool {
	for _, c := range l.object(o) {
		l.commit(c)
	}
	return true
}

// begin starts a pass over the whole source: each object is given to object and the changes committed; missing ends it.
// A pass that is not ended may be begun again.
func (l *ledger) begin() { l.pass++ }

// missing returns the deletion of each object that the pass did not see, by namespace and name.
func (l *ledger) missing() []change {
	var gone []change
	for at, e := range l.known {
		if e.pass != l.pass {
			gone = append(gone, change{kind: watch.Deleted, at: at, entry: e})
		}
	}
	slices.SortFunc(gone, func(a, b change) int { return comparePlaces(a.at, b.at) })
	return gone
}

// commit notes that c was delivered.
func (l *ledger) commit(c change) {
	if before, ok := l.known[c.at]; ok {
		l.sum -= before.print
	}
	if c.kind == watch.Deleted {
		delete(l.known, c.at)
		return
	}
	c.entry.pass = l.pass
	l.known[c.at] = c.entry
	l.sum += c.entry.print
}

// stamp stands for all that is known.
func (l *ledger) stamp() uint64 { return stamp(l.sum, len(l.known)) }

// after is the stamp once c is committed.
func (l *ledger) after(c change) uint64 {
	sum, n := l.sum, len(l.known)
	if before, ok := l.known[c.at]; ok {
		sum, n = sum-before.print, n-1
	}
	if c.kind != watch.Deleted {
		sum, n = sum+c.entry.print, n+1
	}
	return stamp(sum, n)
}

// all returns the deletion of everything.
func (l *ledger) all() []change {
	l.begin()
	return l.missing()
}

// last is the object of c; of one that is only remembered, what is known of its metadata.
func (c change) last(apiVersion, kind string) *unstructured.Unstructured {
	if c.object != nil {
		return c.object
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetNamespace(c.at.namespace)
	o.SetName(c.at.name)
	o.SetUID(c.entry.uid)
	if c.entry.labels != nil {
		o.SetLabels(maps.Clone(c.entry.labels))
	}
	return o
}
