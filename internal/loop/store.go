// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

var _ cache.ReflectorStore = (*store)(nil)

// store holds what a reflector finds. Only the reflector writes, one call at a time.
type store struct {
	strip   func(*unstructured.Unstructured) // may be nil
	changed func(types.NamespacedName)       // may be nil
	listed  func()
	synced  chan struct{} // closed by the first Replace

	mu      sync.RWMutex
	objects map[types.NamespacedName]*unstructured.Unstructured
	sorted  []*unstructured.Unstructured // nil: to be made
}

func (s *store) get(key types.NamespacedName) (*unstructured.Unstructured, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	obj, ok := s.objects[key]
	return obj, ok
}

func (s *store) list() []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sorted == nil {
		s.sorted = slices.SortedFunc(maps.Values(s.objects), func(a, b *unstructured.Unstructured) int {
			return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
		})
	}
	return s.sorted
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
	s.mu.Lock()
	s.objects[KeyOf(obj)] = obj
	s.sorted = nil
	s.mu.Unlock()
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
	s.sorted = nil
	s.mu.Unlock()
	s.tell(KeyOf(obj))
	return nil
}

// Replace stores a whole list, which was stripped already.
func (s *store) Replace(list []any, _ string) error {
	next := make(map[types.NamespacedName]*unstructured.Unstructured, len(list))
	for _, v := range list {
		obj, err := objectOf(v)
		if err != nil {
			return err
		}
		next[KeyOf(obj)] = obj
	}
	s.mu.Lock()
	before := s.objects
	s.objects, s.sorted = next, nil
	s.mu.Unlock()
	s.listed()
	select {
	case <-s.synced:
	default:
		close(s.synced)
	}
	for key, obj := range next {
		// A resourceVersion proves nothing: a server that was restored from a backup gives them out again.
		if was := before[key]; was == nil || !reflect.DeepEqual(was.Object, obj.Object) {
			s.tell(key)
		}
	}
	for key := range before {
		if next[key] == nil {
			s.tell(key)
		}
	}
	return nil
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
