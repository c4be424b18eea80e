// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var nodes = corev1.SchemeGroupVersion.WithResource("nodes")

// nodePage bounds the nodes of one list request. A node is large: it lists all its images.
const nodePage = 100

// measured lists the resources whose capacity is always reported. Other resources are reported if nodes have them: see
// isReported.
var measured = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

// maxReported bounds the resources in one SyncTarget. If nodes have more, the extended resources with the last names are
// left out.
const maxReported = 32

// isReported reports whether a resource is one whose capacity is reported: a measured one, ephemeral storage, or an
// extended resource such as example.com/gpu.
func isReported(name corev1.ResourceName) bool {
	return slices.Contains(measured, name) || name == corev1.ResourceEphemeralStorage || strings.Contains(string(name), "/")
}

// capacity reads the capacity of the downstream, in a goroutine of its own: a heartbeat must not wait for a list of
// nodes.
type capacity struct {
	syncer *Syncer

	mu   sync.Mutex
	last *reading // nil: not read yet
}

// reading is what the nodes of the downstream have. The zero value is the reading of a downstream without nodes: then
// nothing is known.
type reading struct {
	sum      corev1.ResourceList // of the usable nodes; all zero if none is usable
	usable   bool
	cordoned *int64
}

// run reads the nodes every Options.Capacity until ctx ends.
func (c *capacity) run(ctx context.Context) {
	s := c.syncer
	for failing := false; ; {
		read, err := c.read(ctx)
		if err == nil && s.downUID() != "" {
			err = s.sameDownstream(ctx) // the nodes may be those of another cluster
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			c.mu.Lock()
			c.last = &read
			c.mu.Unlock()
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

// describe sets the capacity in now to the last one that was read. It leaves the capacity as it is if no read has
// succeeded yet or the downstream is unreachable. It removes the capacity if Options.Capacity is negative.
func (c *capacity) describe(now *v1alpha1.SyncTargetStatus, unreachable error) {
	if c.syncer.opts.Capacity < 0 {
		now.Capacity, now.CordonedNodes = nil, nil // the server removes only values that this field manager wrote
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil && unreachable == nil {
		now.Capacity, now.CordonedNodes = reported(c.last.sum, now.Capacity), c.last.cordoned
	}
}

// read reads all nodes.
func (c *capacity) read(ctx context.Context) (reading, error) {
	var now reading
	opts := metav1.ListOptions{Limit: nodePage}
	for {
		page, err := c.page(ctx, opts)
		if err != nil {
			return reading{}, fmt.Errorf("list nodes: %w", err)
		}
		for i := range page.Items {
			now.add(&page.Items[i])
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return now, nil
		}
	}
}

// add adds a node.
func (r *reading) add(node *corev1.Node) {
	if r.sum == nil {
		r.sum, r.cordoned = none(), new(int64)
	}
	if node.Spec.Unschedulable {
		*r.cordoned++
	}
	usable := isUsable(node)
	if usable && !r.usable {
		r.usable = true
		maps.DeleteFunc(r.sum, func(name corev1.ResourceName, _ resource.Quantity) bool { return slices.Contains(measured, name) })
	}
	for name, has := range node.Status.Allocatable {
		if !isReported(name) || !usable && slices.Contains(measured, name) {
			continue
		}
		total := r.sum[name]
		if usable {
			total.Add(has)
		}
		r.sum[name] = total // zero if only unusable nodes have the resource
	}
}

// reported returns the capacity to report. A resource that was reported before and that no node has any longer stays,
// with zero: if it were left out, its capacity would count as unknown.
func reported(sum, before corev1.ResourceList) corev1.ResourceList {
	if len(sum) == 0 {
		return sum // without nodes, nothing is known
	}
	all := maps.Clone(sum)
	for name := range before {
		if _, ok := all[name]; !ok && isReported(name) {
			all[name] = resource.Quantity{}
		}
	}
	extended := func(name corev1.ResourceName) int { return strings.Count(string(name), "/") }
	names := slices.SortedFunc(maps.Keys(all), func(a, b corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(extended(a), extended(b)), cmp.Compare(a, b))
	})
	for _, name := range names[min(len(names), maxReported):] {
		delete(all, name)
	}
	return all
}

func none() corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, name := range measured {
		sum[name] = resource.Quantity{}
	}
	return sum
}

func (c *capacity) page(ctx context.Context, opts metav1.ListOptions) (*corev1.NodeList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	page, err := c.syncer.down.Dynamic().Resource(nodes).List(ctx, opts)
	if err != nil {
		return nil, err
	}
	list := &corev1.NodeList{}
	return list, runtime.DefaultUnstructuredConverter.FromUnstructured(page.UnstructuredContent(), list)
}

// isUsable reports whether a node is ready and not cordoned. Taints do not count, since pods may tolerate them.
func isUsable(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
