// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

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
