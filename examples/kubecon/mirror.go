// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// mirror watches the workload and its shards upstream, and records each state. So the story can
// also show states that soon end.
type mirror struct {
	deployments dynamic.ResourceInterface

	mu      sync.Mutex
	history []state
	changed chan struct{} // closed with each new state
}

func newMirror(api region.API) *mirror {
	return &mirror{deployments: api.Dynamic().Resource(deployments).Namespace(namespace), changed: make(chan struct{})}
}

// run calls follow again and again until ctx ends, also while the type is not served yet.
func (m *mirror) run(ctx context.Context) error {
	for ctx.Err() == nil {
		m.follow(ctx)
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return nil
}

// follow lists once, and watches until the watch fails.
func (m *mirror) follow(ctx context.Context) {
	list, err := m.deployments.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	now := state{}
	for i := range list.Items {
		if obj := &list.Items[i]; ours(obj) {
			now[obj.GetName()] = obj
		}
	}
	events, err := m.deployments.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return
	}
	defer events.Stop()
	m.add(now)
	for event := range events.ResultChan() {
		obj, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Error:
			return
		case !ok || !ours(obj):
			continue
		}
		now = maps.Clone(now)
		if event.Type == watch.Deleted {
			delete(now, obj.GetName())
		} else {
			now[obj.GetName()] = obj
		}
		m.add(now)
	}
}

func ours(obj *unstructured.Unstructured) bool {
	return obj.GetName() == workload || obj.GetAnnotations()[splitterv1alpha1.ParentAnnotation] == workload
}

func (m *mirror) add(s state) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.history = append(m.history, s)
	close(m.changed)
	m.changed = make(chan struct{})
}

// next returns the first recorded state for which the function holds returns true. It begins with
// the state that the previous call returned.
func (m *mirror) next(ctx context.Context, what string, holds func(state) bool) (state, error) {
	for {
		m.mu.Lock()
		for len(m.history) > 0 {
			if s := m.history[0]; holds(s) {
				m.mu.Unlock()
				return s, nil
			}
			if len(m.history) == 1 {
				break
			}
			m.history = m.history[1:]
		}
		changed := m.changed
		m.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s: %w; last seen %v", what, context.Cause(ctx), m.last().rows())
		}
	}
}

// last returns the latest state.
func (m *mirror) last() state {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.history) == 0 {
		return nil
	}
	return m.history[len(m.history)-1]
}
