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

	"github.com/atoll-dev/atoll/router/aggregate/internal/splice"
)

// objectKey is the key of an object within its source.
type objectKey struct{ namespace, name string }

func comparePlaces(a, b objectKey) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// entry is the part of a delivered object that a ledger keeps: enough to recognize the object and to report its
// deletion.
type entry struct {
	uid    types.UID
	rv     string
	print  uint64
	labels map[string]string
	pass   uint64 // the last pass that listed the object
}

// change is an event that the consumer of a source has not received yet.
type change struct {
	kind   watch.EventType
	at     objectKey
	object *observed // nil if only the entry of the object is known
	entry  entry     // after the event; for a DELETED, before the event
}

// ledger is the summary of the events that the consumer of one source received. It computes the events that bring
// the consumer to another state, and records delivered events, so that each is delivered once. It does no I/O and
// is not safe for concurrent use.
type ledger struct {
	known map[objectKey]entry
	sets  labelSets
	sum   uint64 // of the fingerprints of all known objects
	pass  uint64
}

func newLedger() *ledger { return &ledger{known: map[objectKey]entry{}, sets: labelSets{}} }

// event returns the changes that an event of the source causes for the consumer. It returns no changes if the consumer
// knows the event already, and two if an object has replaced another one of the same name.
func (l *ledger) event(kind watch.EventType, o *observed) []change {
	if kind != watch.Deleted {
		return l.object(o)
	}
	before, ok := l.known[o.at]
	if !ok || before.uid != o.uid {
		return nil
	}
	return []change{{kind: watch.Deleted, at: o.at, object: o, entry: before}}
}

// object returns the changes that bring the consumer from its state of this object to the state o.
func (l *ledger) object(o *observed) []change {
	at, now := o.at, entry{uid: o.uid, rv: o.rv, print: o.print, labels: o.labels, pass: l.pass}
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

// hold records o as delivered. It always returns true, as feed.pages expects of its callback.
func (l *ledger) hold(o *observed) bool {
	for _, c := range l.object(o) {
		l.commit(c)
	}
	return true
}

// begin starts a pass over the whole source. In a pass, the caller calls the method object for each listed object and
// commits the changes; missing ends the pass. begin may also restart an unfinished pass.
func (l *ledger) begin() { l.pass++ }

// missing returns the deletion of each object that the pass did not list, sorted by namespace and name.
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

// commit records that c was delivered.
func (l *ledger) commit(c change) {
	if before, ok := l.known[c.at]; ok {
		l.sum -= before.print
	}
	if c.kind == watch.Deleted {
		delete(l.known, c.at)
		return
	}
	c.entry.pass, c.entry.labels = l.pass, l.sets.intern(c.entry.labels)
	l.known[c.at] = c.entry
	l.sum += c.entry.print
}

// stamp returns the stamp of all known objects.
func (l *ledger) stamp() uint64 { return splice.Stamp(l.sum, len(l.known)) }

// after returns the stamp that the ledger would have after a commit of c.
func (l *ledger) after(c change) uint64 {
	sum, n := l.sum, len(l.known)
	if before, ok := l.known[c.at]; ok {
		sum, n = sum-before.print, n-1
	}
	if c.kind != watch.Deleted {
		sum, n = sum+c.entry.print, n+1
	}
	return splice.Stamp(sum, n)
}

// all returns the deletion of every known object.
func (l *ledger) all() []change {
	l.begin()
	return l.missing()
}

// last returns an object with the metadata in the entry of c.
func (c change) last(apiVersion, kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetNamespace(c.at.namespace)
	o.SetName(c.at.name)
	o.SetUID(c.entry.uid)
	if c.entry.labels != nil {
		o.SetLabels(maps.Clone(c.entry.labels))
	}
	return o
}
