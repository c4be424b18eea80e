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

// store holds what a reflector finds. Only the reflector writes, one call at a time.
type store struct {
	strip   func(*unstructured.Unstructured) // may be nil
	changed func(types.NamespacedName)       // may be nil
	listed  func()
	synced  chan struct{} // closed by the first Replace
	packed  bool          // objects are kept in packs

	mu      sync.RWMutex
	objects map[types.NamespacedName]*unstructured.Unstructured
	packs   map[types.NamespacedName][]byte
	sorted  []*unstructured.Unstructured // nil: to be made
}

func (s *store) get(key types.NamespacedName) (*unstructured.Unstructured, bool) {
	s.mu.RLock()
	if !s.packed {
		defer s.mu.RUnlock()
		obj, ok := s.objects[key]
		return obj, ok
	}
	pack, ok := s.packs[key]
	s.mu.RUnlock()
	if !ok {
		return nil, false
	}
	return unpack(pack), true
}

func (s *store) keys() []types.NamespacedName {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.packed {
		return slices.Collect(maps.Keys(s.packs))
	}
	return slices.Collect(maps.Keys(s.objects))
}

func (s *store) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.objects) + len(s.packs)
}

func (s *store) list() []*unstructured.Unstructured {
	if s.packed {
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
		s.sorted = slices.SortedFunc(maps.Values(s.objects), func(a, b *unstructured.Unstructured) int {
			return compareKeys(KeyOf(a), KeyOf(b))
		})
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
	if s.strip != nil {
		s.strip(obj)
	}
	if s.packed {
		pack, err := packOf(obj)
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.packs[KeyOf(obj)] = pack
		s.mu.Unlock()
	} else {
		s.mu.Lock()
		s.objects[KeyOf(obj)] = obj
		s.sorted = nil
		s.mu.Unlock()
	}
	s.tell(KeyOf(obj))
	return nil
}

// Update is Add.
func (s *store) Update(v any) error { return s.Add(v) }

// Delete removes the object of a watch event.
func (s *store) Delete(v any) error {
	obj, err := objectOf(v)
	if err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.objects, KeyOf(obj))
	delete(s.packs, KeyOf(obj))
	s.sorted = nil
	s.mu.Unlock()
	s.tell(KeyOf(obj))
	return nil
}

// Replace stores a whole list, which was stripped already.
func (s *store) Replace(list []any, _ string) error {
	var differ []types.NamespacedName
	var err error
	if s.packed {
		differ, err = replace(s, &s.packs, list, packOf, bytes.Equal)
	} else {
		differ, err = replace(s, &s.objects, list, itself, func(a, b *unstructured.Unstructured) bool {
			// A resourceVersion proves nothing: a server that was restored from a backup gives them out again.
			return reflect.DeepEqual(a.Object, b.Object)
		})
	}
	if err != nil {
		return err
	}
	s.listed()
	select {
	case <-s.synced:
	default:
		close(s.synced)
	}
	for _, key := range differ {
		s.tell(key)
	}
	return nil
}

// replace puts list in the place of what is in kept, and returns the keys of what differs.
func replace[T any](s *store, kept *map[types.NamespacedName]T, list []any, keep func(*unstructured.Unstructured) (T, error), equal func(a, b T) bool) ([]types.NamespacedName, error) {
	next := make(map[types.NamespacedName]T, len(list))
	for i, v := range list {
		obj, err := objectOf(v)
		if err != nil {
			return nil, err
		}
		if next[KeyOf(obj)], err = keep(obj); err != nil {
			return nil, err
		}
		list[i] = nil
	}
	s.mu.Lock()
	before := *kept
	*kept, s.sorted = next, nil
	s.mu.Unlock()
	var differ []types.NamespacedName
	for key, obj := range next {
		if was, ok := before[key]; !ok || !equal(was, obj) {
			differ = append(differ, key)
		}
	}
	for key := range before {
		if _, ok := next[key]; !ok {
			differ = append(differ, key)
		}
	}
	return differ, nil
}

func itself(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) { return obj, nil }

// packOf and unpack turn an object into JSON and back. A pack is a tenth of the maps in size.
func packOf(obj *unstructured.Unstructured) ([]byte, error) {
	pack, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, fmt.Errorf("loop: %s: %w", KeyOf(obj), err)
	}
	return pack, nil
}

func unpack(pack []byte) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	_ = utiljson.Unmarshal(pack, &obj.Object) // it was an object before
	return obj
}

// Resync does nothing: nothing is ever told twice.
func (s *store) Resync() error { return nil }

func (s *store) tell(key types.NamespacedName) {
	if s.changed != nil {
		s.changed(key)
	}
}

func objectOf(v any) (*unstructured.Unstructured, error) {
	obj, ok := v.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("loop: the server sent a %T, not an object", v)
	}
	return obj, nil
}
