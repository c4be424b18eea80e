// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/internal/logging"
)

var nodes = corev1.SchemeGroupVersion.WithResource("nodes")

// nodePage is how many nodes are read at once: each names all the images that it has.
const nodePage = 100

// measured are the resources of which capacity is said. Others bear names that anybody may choose.
var measured = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

// measure reads the capacity of the downstream until ctx ends, for the next heartbeat to say. It has a goroutine of its own:
// a heartbeat waits for no list of nodes.
func (s *Syncer) measure(ctx context.Context) {
	for failing := false; ; {
		capacity, err := s.readCapacity(ctx)
		if err == nil && s.downUID() != "" {
			err = s.sameDownstream(ctx) // or else it is that of another
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			s.mu.Lock()
			s.capacity = &capacity
			s.mu.Unlock()
		}
		if failing != (err != nil) {
			failing = err != nil
			if failing {
				logging.From(ctx).Info("The capacity of the cluster is not known", "reason", err.Error())
			}
			s.opts.Observer.capacity(ctx, CapacityEvent{Err: err})
		}
		select {
		case <-time.After(s.opts.Capacity + rand.N(s.opts.Capacity/5+1)):
		case <-ctx.Done():
			return
		}
	}
}

// lastCapacity is what was last read; ok is false if nothing was yet.
func (s *Syncer) lastCapacity() (_ corev1.ResourceList, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.capacity == nil {
		return nil, false
	}
	return *s.capacity, true
}

// readCapacity adds up what the downstream's nodes have. It is nil if there are none: then nobody knows.
func (s *Syncer) readCapacity(ctx context.Context) (corev1.ResourceList, error) {
	var sum corev1.ResourceList
	usable := false
	opts := metav1.ListOptions{Limit: nodePage}
	for {
		page, err := s.nodes(ctx, opts)
		if err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		for _, node := range page.Items {
			if sum == nil {
				sum = corev1.ResourceList{}
			}
			if !isUsable(&node) {
				continue
			}
			usable = true
			for _, name := range measured {
				if has, ok := node.Status.Allocatable[name]; ok {
					total := sum[name]
					total.Add(has)
					sum[name] = total
				}
			}
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			break
		}
	}
	if sum != nil && !usable {
		for _, name := range measured {
			sum[name] = resource.Quantity{}
		}
	}
	return sum, nil
}

func (s *Syncer) nodes(ctx context.Context, opts metav1.ListOptions) (*corev1.NodeList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	page, err := s.down.Dynamic().Resource(nodes).List(ctx, opts)
	if err != nil {
		return nil, err
	}
	list := &corev1.NodeList{}
	return list, runtime.DefaultUnstructuredConverter.FromUnstructured(page.UnstructuredContent(), list)
}

// isUsable says whether a node takes pods. Taints are not looked at, as pods may tolerate them.
func isUsable(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
