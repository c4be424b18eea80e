// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// informer is an unmodified informer of a user over all regions.
type informer struct {
	w     *world
	cache cache.SharedIndexInformer
	lists atomic.Int64
	gone  sync.Map // names of objects that were deleted
}

// watch starts an informer of the user over the objects of all users, and waits until it has them.
func (w *world) watch(user, namespace string) *informer {
	w.t.Helper()
	i := &informer{w: w}
	config := w.config(user, "*")
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{&i.lists, next} })
	i.cache = dynamicinformer.NewFilteredDynamicInformer(planetest.Dynamic(w.t, config), configMaps, namespace, 0, cache.Indexers{},
		func(o *metav1.ListOptions) { o.LabelSelector = "load=story" }).Informer()
	_, err := i.cache.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
		if object, ok := o.(*unstructured.Unstructured); ok {
			i.gone.Store(object.GetName(), true)
		}
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	var work sync.WaitGroup
	work.Go(func() { i.cache.RunWithContext(ctx) })
	w.t.Cleanup(func() {
		cancel()
		work.Wait()
	})
	planetest.Eventually(w.t, soon, "the informer has a list", func(context.Context) error {
		if !i.cache.HasSynced() {
			return fmt.Errorf("after %d lists", i.lists.Load())
		}
		return nil
	})
	return i
}

// has waits until the informer has exactly the given objects.
func (i *informer) has(want map[string]string) {
	i.w.t.Helper()
	planetest.Eventually(i.w.t, soon, "the informer has what the regions have", func(context.Context) error {
		got := map[string]string{}
		for _, o := range i.cache.GetStore().List() {
			object := o.(*unstructured.Unstructured)
			got[object.GetName()] = valueOf(object)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("want -, got +: %s", diff)
		}
		return nil
	})
}

// advances waits until the informer has a later position in its watch than the given one.
func (i *informer) advances(from string) {
	i.w.t.Helper()
	planetest.Eventually(i.w.t, soon, "the informer gets events", func(context.Context) error {
		if now := i.cache.LastSyncResourceVersion(); now == from {
			return fmt.Errorf("it is still at %s", now)
		}
		return nil
	})
}
