// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"fmt"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// consumer holds the state from one list and the watch after it, and records inconsistent events.
type consumer struct {
	mu     sync.Mutex
	held   map[string]*unstructured.Unstructured
	events map[region.Key]int
	wrong  []string
}

// run lists once and watches once, until ctx ends. The Reader must hide all interruptions.
func (c *consumer) run(ctx context.Context, r *aggregate.Reader) error {
	list, err := r.ListAll(ctx, metav1.ListOptions{LabelSelector: "app=storm"})
	if err != nil {
		return err
	}
	held := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		held[list.Items[i].GetName()] = &list.Items[i]
	}
	c.mu.Lock()
	c.held, c.events = held, map[region.Key]int{}
	c.mu.Unlock()
	w, err := r.WatchWithContext(ctx, metav1.ListOptions{
		LabelSelector: "app=storm", ResourceVersion: list.GetResourceVersion(), AllowWatchBookmarks: true,
	})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			return apierrors.FromObject(e.Object)
		}
		if o, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Bookmark {
			c.event(e.Type, o)
		}
	}
	return ctx.Err()
}

func (c *consumer) event(kind watch.EventType, o *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := o.GetName()
	before := c.held[name]
	if fits := before == nil; fits != (kind == watch.Added) || before != nil && before.GetUID() != o.GetUID() {
		c.wrong = append(c.wrong, fmt.Sprintf("%s of %s, which exists: %t", kind, name, before != nil))
	}
	if kind == watch.Deleted {
		delete(c.held, name)
	} else {
		c.held[name] = o
	}
	if k, ok := aggregate.RegionOf(o); ok {
		c.events[k]++
	}
}

// view returns UID and value of the held objects, by qualified name.
func (c *consumer) view() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	view := map[string]string{}
	for name, o := range c.held {
		view[name] = text(o)
	}
	return view
}

func (c *consumer) counts() map[region.Key]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.events)
}

func (c *consumer) mistakes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrong
}

func text(o *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(o.Object, "data", "value")
	return string(o.GetUID()) + " " + value
}
