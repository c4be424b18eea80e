// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// index maps parents to the keys of their shards.
type index struct {
	mu      sync.Mutex
	parents map[types.NamespacedName]string // the parent's name by the key of a shard
	shards  map[types.NamespacedName]map[types.NamespacedName]bool
}

func newIndex() *index {
	return &index{parents: map[types.NamespacedName]string{}, shards: map[types.NamespacedName]map[types.NamespacedName]bool{}}
}

// set records the name of an object's parent, and returns the name that it replaces. The name is empty if
// the object is not a shard.
func (i *index) set(key types.NamespacedName, parent string) (before string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before = i.parents[key]
	if before == parent {
		return before
	}
	if before != "" {
		old := types.NamespacedName{Namespace: key.Namespace, Name: before}
		delete(i.shards[old], key)
		if len(i.shards[old]) == 0 {
			delete(i.shards, old)
		}
		delete(i.parents, key)
	}
	if parent != "" {
		now := types.NamespacedName{Namespace: key.Namespace, Name: parent}
		if i.shards[now] == nil {
			i.shards[now] = map[types.NamespacedName]bool{}
		}
		i.shards[now][key] = true
		i.parents[key] = parent
	}
	return before
}

// of returns the keys of a parent's shards.
func (i *index) of(parent types.NamespacedName) []types.NamespacedName {
	i.mu.Lock()
	defer i.mu.Unlock()
	var keys []types.NamespacedName
	for key := range i.shards[parent] {
		keys = append(keys, key)
	}
	return keys
}

// namespaces has the keys of parents, by namespace.
type namespaces struct {
	mu   sync.Mutex
	keys map[string]map[types.NamespacedName]bool
}

// set records whether there is a parent with a key.
func (n *namespaces) set(key types.NamespacedName, there bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	in := n.keys[key.Namespace]
	switch {
	case !there:
		delete(in, key)
		if len(in) == 0 {
			delete(n.keys, key.Namespace)
		}
	case in == nil:
		if n.keys == nil {
			n.keys = map[string]map[types.NamespacedName]bool{}
		}
		n.keys[key.Namespace] = map[types.NamespacedName]bool{key: true}
	default:
		in[key] = true
	}
}

// in returns the keys in a namespace.
func (n *namespaces) in(namespace string) []types.NamespacedName {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.keys[namespace]))
}
