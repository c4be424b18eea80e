// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// index finds ClusterDaemonSets by their Deployments and by their UIDs.
type index struct {
	loop.Children // the Deployments of ClusterDaemonSets

	mu   sync.Mutex
	uids map[types.NamespacedName]types.UID // of ClusterDaemonSets
	keys map[types.UID]types.NamespacedName
}

func newIndex() *index {
	return &index{uids: map[types.NamespacedName]types.UID{}, keys: map[types.UID]types.NamespacedName{}}
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
