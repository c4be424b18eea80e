// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Children maps parents to the keys of their children, which are in the same namespace. The zero value is empty. Safe for
// concurrent use.
type Children struct {
	mu       sync.Mutex
	parents  map[types.NamespacedName]string // the parent's name by the key of a child
	children map[types.NamespacedName]map[types.NamespacedName]bool
}

// Set records the name of a child's parent, and returns the name that was recorded before. An empty parent means that the
// object is no child. An empty result means that it was none.
func (c *Children) Set(child types.NamespacedName, parent string) (before string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before = c.parents[child]
	if before == parent {
		return before
	}
	if before != "" {
		old := types.NamespacedName{Namespace: child.Namespace, Name: before}
		delete(c.parents, child)
		delete(c.children[old], child)
		if len(c.children[old]) == 0 {
			delete(c.children, old)
		}
	}
	if parent == "" {
		return before
	}
	if c.parents == nil {
		c.parents, c.children = map[types.NamespacedName]string{}, map[types.NamespacedName]map[types.NamespacedName]bool{}
	}
	now := types.NamespacedName{Namespace: child.Namespace, Name: parent}
	if c.children[now] == nil {
		c.children[now] = map[types.NamespacedName]bool{}
	}
	c.parents[child], c.children[now][child] = parent, true
	return before
}

// Of returns the keys of a parent's children.
func (c *Children) Of(parent types.NamespacedName) []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.children[parent]))
}

// Parents returns the keys of the parents that have children.
func (c *Children) Parents() []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.children))
}
