// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
)

// index holds the cached Peers, each decoded once, sorted by name. It never modifies a slice or Peer that it has
// returned, and callers must not modify one either.
type index struct {
	mu    sync.Mutex
	known []known
}

// known holds a Peer and the cached object that the Peer was decoded from.
type known struct {
	peer *masterv1alpha1.Peer
	obj  *unstructured.Unstructured
}

func (i *index) list() []known {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.known
}

func (i *index) get(name string) (known, bool) {
	all := i.list()
	at, ok := slices.BinarySearchFunc(all, name, byName)
	if !ok {
		return known{}, false
	}
	return all[at], true
}

func byName(k known, name string) int { return strings.Compare(k.peer.Name, name) }

// fill replaces the index by all cached objects.
func (i *index) fill(objects *loop.Objects) {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := make([]known, 0, len(i.known))
	for _, obj := range objects.List() {
		all = append(all, known{peer: decode(obj), obj: obj})
	}
	i.known = all
}

// update updates the index after one Peer was added, changed or deleted.
func (i *index) update(objects *loop.Objects, name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	obj, present := objects.Get(types.NamespacedName{Name: name})
	at, before := slices.BinarySearchFunc(i.known, name, byName)
	all := slices.Clone(i.known) // readers use the old slice
	switch {
	case present && before:
		all[at] = known{peer: decode(obj), obj: obj}
	case present:
		all = slices.Insert(all, at, known{peer: decode(obj), obj: obj})
	case before:
		all = slices.Delete(all, at, at+1)
	}
	i.known = all
}

// decode decodes obj. If this fails, it returns a Peer with only the metadata of obj. The API server has checked the
// types of the fields against our schema.
func decode(obj *unstructured.Unstructured) *masterv1alpha1.Peer {
	p := &masterv1alpha1.Peer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, p); err != nil {
		p = &masterv1alpha1.Peer{}
		p.Name, p.UID, p.Generation, p.Labels = obj.GetName(), obj.GetUID(), obj.GetGeneration(), obj.GetLabels()
		p.ResourceVersion, p.CreationTimestamp, p.DeletionTimestamp = obj.GetResourceVersion(), obj.GetCreationTimestamp(), obj.GetDeletionTimestamp()
	}
	p.ManagedFields = nil
	return p
}
