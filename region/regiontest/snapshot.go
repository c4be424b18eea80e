// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Saved is the state of a server at one moment, like a snapshot of etcd. The server does not modify it.
type Saved struct {
	revision uint64
	tables   map[schema.GroupResource]map[objectKey]*item
}

// Save returns the current state.
func (s *Server) Save() Saved {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	saved := Saved{revision: s.store.revision, tables: map[schema.GroupResource]map[objectKey]*item{}}
	for gr, t := range s.store.tables {
		saved.tables[gr] = maps.Clone(t.items)
	}
	return saved
}

// Load restores saved: later writes are lost, and resourceVersions are used again, as after a restore of etcd from a
// backup. Running watches end. UIDs and the cluster's identity are those of saved, so loading one server's state into
// another simulates a copied cluster.
func (s *Server) Load(saved Saved) error {
	s.store.mu.Lock()
	for _, t := range s.store.tables {
		t.closed = true
		t.wake()
	}
	s.store.revision, s.store.compacted = saved.revision, saved.revision
	s.store.tables = map[schema.GroupResource]*table{}
	for gr, items := range saved.tables {
		s.store.tableOf(gr).items = maps.Clone(items)
	}
	s.store.mu.Unlock()
	for _, r := range s.catalogue.all() {
		if r.custom() {
			s.catalogue.remove(r.gr())
		}
	}
	for _, it := range saved.tables[crdResource] {
		crd, err := decodeCRD(it.object)
		if err == nil {
			err = s.serve(crd, &crd.Status)
		}
		if err != nil {
			return fmt.Errorf("regiontest: load CRD %s: %w", it.key.name, err)
		}
	}
	return nil
}

// Objects returns copies of all stored objects of a resource, by namespace and name, without a request: for assertions
// that must not disturb faults and history.
func (s *Server) Objects(gr schema.GroupResource) ([]map[string]any, error) {
	items, _, _ := s.store.list(gr, "", 0)
	objects := make([]map[string]any, len(items))
	for i, it := range items {
		if err := json.Unmarshal(it.raw, &objects[i]); err != nil {
			return nil, fmt.Errorf("regiontest: %s %s: %w", gr, it.key.name, err)
		}
	}
	return objects, nil
}
