// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"encoding/json"
	"errors"
	"maps"
	"sort"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object is a decoded API object. A stored object is never modified.
type object = map[string]any

// objectKey is the key of an object in its table.
type objectKey struct{ namespace, name string }

func (k objectKey) before(o objectKey) bool {
	if k.namespace != o.namespace {
		return k.namespace < o.namespace
	}
	return k.name < o.name
}

// item is one stored version of an object, encoded once for all readers.
type item struct {
	key      objectKey
	object   object
	raw      []byte
	revision uint64
}

// change is one committed write. old is nil for a creation; gone means a deletion, and item is then the last state with
// the revision of the deletion.
type change struct {
	revision  uint64
	old, item *item
	gone      bool
}

// table holds the objects of one resource and the history that watches read.
type table struct {
	items   map[objectKey]*item
	log     []change
	changed chan struct{} // closed and replaced by each write
	closed  bool          // the resource is no longer served, or Load has replaced the table

	compacted uint64 // the log lacks the changes up to this revision
}

// store is the state of one server.
type store struct {
	mu        sync.RWMutex
	revision  uint64
	compacted uint64 // the revision at the last call of compact or Load
	keep      int    // changes kept per table; zero: all
	tables    map[schema.GroupResource]*table
}

var (
	errExists = errors.New("exists")
	errRaced  = errors.New("raced")
)

func newStore(keep int) *store {
	return &store{revision: 1, keep: keep, tables: map[schema.GroupResource]*table{}}
}

// tableOf returns the table of gr, and creates it if needed. The caller holds the write lock.
func (s *store) tableOf(gr schema.GroupResource) *table {
	t := s.tables[gr]
	if t == nil {
		t = &table{items: map[objectKey]*item{}, changed: make(chan struct{}), compacted: s.compacted}
		s.tables[gr] = t
	}
	return t
}

func (s *store) get(gr schema.GroupResource, key objectKey) *item {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.tables[gr]; t != nil {
		return t.items[key]
	}
	return nil
}

func (s *store) current() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.revision
}

// put replaces old, which is nil for a creation, by next. The caller must not use next afterwards. It fails with
// errExists or errRaced if another write came first.
func (s *store) put(gr schema.GroupResource, key objectKey, old *item, next object) (*item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tableOf(gr)
	switch present := t.items[key]; {
	case old == nil && present != nil:
		return nil, errExists
	case present != old:
		return nil, errRaced
	}
	it, err := encode(key, next, s.revision+1)
	if err != nil {
		return nil, err
	}
	t.items[key] = it
	s.append(t, change{old: old, item: it})
	return it, nil
}

// remove deletes old and returns its last state: last or, if last is nil, the state of old. The caller must not use
// last afterwards. It fails with errRaced if another write came first.
func (s *store) remove(gr schema.GroupResource, old *item, last object) (*item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tableOf(gr)
	if t.items[old.key] != old {
		return nil, errRaced
	}
	if last == nil {
		last = maps.Clone(old.object)
		if m, ok := last["metadata"].(map[string]any); ok {
			last["metadata"] = maps.Clone(m)
		}
	}
	it, err := encode(old.key, last, s.revision+1)
	if err != nil {
		return nil, err
	}
	delete(t.items, old.key)
	s.append(t, change{old: old, item: it, gone: true})
	return it, nil
}

func encode(key objectKey, o object, revision uint64) (*item, error) {
	metadataOf(o)["resourceVersion"] = strconv.FormatUint(revision, 10)
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return &item{key: key, object: o, raw: raw, revision: revision}, nil
}

// append records c as the next revision, and drops old changes of t if the log is too long. The caller holds the write
// lock.
func (s *store) append(t *table, c change) {
	s.revision++
	c.revision = s.revision
	t.log = append(t.log, c)
	if s.keep > 0 && len(t.log) > 2*s.keep {
		drop := len(t.log) - s.keep
		t.compacted = t.log[drop-1].revision
		t.log = append([]change(nil), t.log[drop:]...)
	}
	t.wake()
}

func (t *table) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// close ends the watches of a resource and forgets its objects.
func (s *store) close(gr schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tables[gr]; t != nil {
		t.closed = true
		t.wake()
		delete(s.tables, gr)
	}
}

// compact forgets all history up to now.
func (s *store) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted = s.revision
	for _, t := range s.tables {
		t.log, t.compacted = nil, s.revision
		t.wake()
	}
}

// list returns the items of gr in one namespace, or in all if namespace is empty, ordered by namespace and name. The
// items are those of revision at, or of the current revision if at is zero. list also returns this revision. The bool
// is false if the revision is compacted.
func (s *store) list(gr schema.GroupResource, namespace string, at uint64) ([]*item, uint64, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if at == 0 {
		at = s.revision
	}
	t := s.tables[gr]
	if t == nil {
		return nil, at, at >= s.compacted
	}
	if at < t.compacted {
		return nil, at, false
	}
	then := t.items
	if n := len(t.log); n > 0 && t.log[n-1].revision > at {
		then = maps.Clone(t.items)
		for i := n - 1; i >= 0 && t.log[i].revision > at; i-- {
			if c := t.log[i]; c.old == nil {
				delete(then, c.item.key)
			} else {
				then[c.old.key] = c.old
			}
		}
	}
	items := make([]*item, 0, len(then))
	for key, it := range then {
		if namespace == "" || key.namespace == namespace {
			items = append(items, it)
		}
	}
	sort.Slice(items, func(i, j int) bool { return items[i].key.before(items[j].key) })
	return items, at, true
}

// since returns the changes of t after revision at, the current revision, and a channel that the next change closes. ok
// is false if changes after at were compacted. open is false if gr is no longer served, or if Load has replaced t.
func (s *store) since(gr schema.GroupResource, t *table, at uint64) (changes []change, now uint64, next <-chan struct{}, ok, open bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i := sort.Search(len(t.log), func(i int) bool { return t.log[i].revision > at })
	return t.log[i:len(t.log):len(t.log)], s.revision, t.changed, at >= t.compacted, !t.closed && s.tables[gr] == t
}

// watched returns the table of gr, the current revision, and the revision up to which the changes of the table are
// compacted.
func (s *store) watched(gr schema.GroupResource) (t *table, now, compacted uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t = s.tableOf(gr)
	return t, s.revision, t.compacted
}

// metadataOf returns the metadata of o, and creates it if needed.
func metadataOf(o object) map[string]any {
	m, ok := o["metadata"].(map[string]any)
	if !ok {
		m = map[string]any{}
		o["metadata"] = m
	}
	return m
}
