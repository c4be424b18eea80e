// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// index maps ClusterDaemonSets to the keys of their Deployments.
type index struct {
	mu     sync.Mutex
	names  map[types.NamespacedName]string // the name of the ClusterDaemonSet, by the key of a Deployment
	copies map[types.NamespacedName]map[types.NamespacedName]bool
}

func newIndex() *index {
	return &index{names: map[types.NamespacedName]string{}, copies: map[types.NamespacedName]map[types.NamespacedName]bool{}}
}

// set records the name of the ClusterDaemonSet of a Deployment, empty for none. It returns the name before.
func (i *index) set(key types.NamespacedName, name string) (before string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before = i.names[key]
	if before == name {
		return before
	}
	if before != "" {
		old := types.NamespacedName{Namespace: key.Namespace, Name: before}
		delete(i.names, key)
		delete(i.copies[old], key)
		if len(i.copies[old]) == 0 {
			delete(i.copies, old)
		}
	}
	if name != "" {
		now := types.NamespacedName{Namespace: key.Namespace, Name: name}
		i.names[key] = name
		if i.copies[now] == nil {
			i.copies[now] = map[types.NamespacedName]bool{}
		}
		i.copies[now][key] = true
	}
	return before
}

// of returns the keys of the Deployments of a ClusterDaemonSet.
func (i *index) of(set types.NamespacedName) []types.NamespacedName {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Collect(maps.Keys(i.copies[set]))
}

// sets returns the keys of the ClusterDaemonSets that have Deployments.
func (i *index) sets() []types.NamespacedName {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Collect(maps.Keys(i.copies))
}
