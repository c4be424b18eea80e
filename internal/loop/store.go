// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"
)

var _ cache.ReflectorStore = (*store)(nil)

// store holds the objects that a reflector finds. Only the reflector writes, one call at a time.
type store struct {
	opts   ObjectsOptions
	listed func()
	synced chan struct{} // closed by the first Replace

	mu      sync.RWMutex
	entries map[types.NamespacedName]entry
	serial  uint64                       // of the last change
	sorted  []*unstructured.Unstructured // nil: to be rebuilt
}

// entry is one object.
type entry struct {
	obj    *unstructured.Unstructured // nil if it is packed
	pack   []byte
	note   string
	serial uint64
}

func (e entry) object() *unstructured.Unstructured {
	if e.obj != nil {
		return e.obj
	}
	return unpack(e.pack)
}

// equal reports whether two entries have the same content. Equal resourceVersions are no proof: a
// server that was restored from a backup reuses them.
func (e entry) equal(other entry) bool {
	if e.obj != nil {
		return other.obj != nil && reflect.DeepEqual(e.obj.Object, other.obj.Object)
	}
	return bytes.Equal(e.pack, other.pack)
}

func (s *store) entryOf(obj *unstructured.Unstructured) (entry, error) {
	var e entry
	if s.opts.Note != nil {
		e.note = s.opts.Note(obj)
	}
	if !s.opts.Packed {
		e.obj = obj
		return e, nil
	}
	var err error
	e.pack, err = packOf(obj)
	return e, err
}

func (s *store) get(key types.NamespacedName) (*unstructured.Unstructured, bool) {
	s.mu.RLock()
	e, ok := s.entries[key]
	s.mu.RUnlock()
	if !ok {
		return nil, false
	}
	return e.object(), true
}

func (s *store) noteOf(key types.NamespacedName) (note string, serial uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.entries[key]
	return e.note, e.serial
}

func (s *store) keys() []types.NamespacedName {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.entries))
}

func (s *store) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.entries)
}

func (s *store) list() []*unstructured.Unstructured {
	if s.opts.Packed {
		var all []*unstructured.Unstructured
		for _, key := range slices.SortedFunc(slices.Values(s.keys()), compareKeys) {
			if obj, ok := s.get(key); ok {
				all = append(all, obj)
			}
		}
		return all
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sorted == nil {
		for _, e := range s.entries {
			s.sorted = append(s.sorted, e.obj)
		}
		slices.SortFunc(s.sorted, func(a, b *unstructured.Unstructured) int { return compareKeys(KeyOf(a), KeyOf(b)) })
	}
	return s.sorted
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Add stores the object of a watch event.
func (s *store) Add(v any) error {
	obj, err := objectOf(v)
	if err != nil {
		return err
	}
	if s.opts.Strip != nil {
		s.opts.Strip(obj)
	}
	e, err := s.entryOf(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.serial++
	e.serial = s.serial
	_, before := s.entries[KeyOf(obj)]
	s.entries[KeyOf(obj)] = e
	s.sorted = nil
	s.mu.Unlock()
	if !before && s.opts.Appeared != nil {
		s.opts.Appeared(KeyOf(obj))
	}
	s.notify(KeyOf(obj))
	return nil
}

// Update stores the object of a watch event, like Add.
func (s *store) Update(v any) error { return s.Add(v) }

// Delete removes the object of a watch event.
func (s *store) Delete(v any) error {
	obj, err := objectOf(v)
	if err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.entries, KeyOf(obj))
	s.sorted = nil
	if s.opts.Removed != nil {
		s.opts.Removed(obj)
	}
	s.mu.Unlock()
	s.notify(KeyOf(obj))
	return nil
}

// Replace stores a whole list of stripped objects.
func (s *store) Replace(list []any, _ string) error {
	next := make(map[types.NamespacedName]entry, len(list))
	for i, v := range list {
		obj, err := objectOf(v)
		if err != nil {
			return err
		}
		if next[KeyOf(obj)], err = s.entryOf(obj); err != nil {
			return err
		}
		list[i] = nil
	}
	differ := s.replace(next)
	tell := func() {
		for _, key := range differ {
			if s.opts.Listed != nil {
				s.opts.Listed(key)
			}
		}
	}
	if s.opts.Indexed {
		tell()
	}
	s.listed()
	select {
	case <-s.synced:
	default:
		close(s.synced)
	}
	if !s.opts.Indexed {
		tell()
	}
	return nil
}

// replace replaces all entries by next, and returns the keys of entries that differ. An unchanged
// entry keeps its serial.
func (s *store) replace(next map[types.NamespacedName]entry) []types.NamespacedName {
	var differ []types.NamespacedName
	for key, e := range next {
		was, ok := s.entries[key] // only the reflector writes
		if e.serial = was.serial; !ok || !was.equal(e) {
			s.mu.Lock()
			s.serial++
			e.serial = s.serial
			s.mu.Unlock()
			differ = append(differ, key)
		}
		next[key] = e
	}
	for key := range s.entries {
		if _, ok := next[key]; !ok {
			differ = append(differ, key)
		}
	}
	s.mu.Lock()
	s.entries, s.sorted = next, nil
	s.mu.Unlock()
	return differ
}

// packOf and unpack convert an object to JSON and back. JSON takes a tenth of the memory.
func packOf(obj *unstructured.Unstructured) ([]byte, error) {
	pack, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, fmt.Errorf("loop: %s: %w", KeyOf(obj), err)
	}
	return pack, nil
}

func unpack(pack []byte) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	_ = utiljson.Unmarshal(pack, &obj.Object) // packOf encoded an object
	return obj
}

// Resync does nothing: changes are reported once.
func (s *store) Resync() error { return nil }

func (s *store) notify(key types.NamespacedName) {
	if s.opts.Changed != nil {
		s.opts.Changed(key)
	}
}

func objectOf(v any) (*unstructured.Unstructured, error) {
	obj, ok := v.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("loop: the server sent a %T, not an object", v)
	}
	return obj, nil
}
