// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/atoll-dev/atoll/splitter"
)

// Script is splitter.Clusters whose list a test sets. It permits one Watch. Use NewScript.
type Script struct {
	mu      sync.Mutex
	list    []splitter.Cluster
	changed chan struct{}
}

// NewScript returns a Script with the given clusters.
func NewScript(clusters ...splitter.Cluster) *Script {
	return &Script{list: clusters, changed: make(chan struct{}, 1)}
}

// Set replaces the clusters. It does not block.
func (s *Script) Set(clusters ...splitter.Cluster) {
	s.mu.Lock()
	s.list = clusters
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Watch yields the clusters, first at once and then after each Set, until ctx ends.
func (s *Script) Watch(ctx context.Context) iter.Seq[[]splitter.Cluster] {
	return func(yield func([]splitter.Cluster) bool) {
		for {
			if !yield(s.List()) {
				return
			}
			select {
			case <-s.changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// List returns the clusters.
func (s *Script) List() []splitter.Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}
