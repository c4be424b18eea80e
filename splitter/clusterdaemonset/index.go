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
	uids   map[types.NamespacedName]types.UID // of ClusterDaemonSets
	keys   map[types.UID]types.NamespacedName
}

func newIndex() *index {
	return &index{
		names: map[types.NamespacedName]string{}, copies: map[types.NamespacedName]map[types.NamespacedName]bool{},
		uids: map[types.NamespacedName]types.UID{}, keys: map[types.UID]types.NamespacedName{},
	}
}

// set records the name of the ClusterDaemonSet of a Deployment, empty for none. It returns the previous name.
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

// identify records the UID of a ClusterDaemonSet, empty if it does not exist.
func (i *index) identify(set types.NamespacedName, uid types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.keys, i.uids[set])
	delete(i.uids, set)
	if uid != "" {
		i.uids[set], i.keys[uid] = uid, set
	}
}

// identified returns the key of the ClusterDaemonSet with a UID.
func (i *index) identified(uid types.UID) (set types.NamespacedName, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	set, ok = i.keys[uid]
	return set, ok
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
