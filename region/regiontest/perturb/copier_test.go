// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// copier copies each ConfigMap of the server up to the server down, with client-go's informer and
// queue. Its fields enable mistakes.
type copier struct {
	mixesReads      bool // copies the cached object with the resourceVersion of a live read
	countsEvents    bool // records how often an object changed, counted by events
	awaitsDeletions bool // deletes a copy only after it has observed the deletion of its object
	startsAnew      bool // deletes a copy that others have changed, and creates it again
}

func (c copier) run(ctx context.Context, access perturb.Access) error {
	up, err := client(access, "up")
	if err != nil {
		return err
	}
	down, err := client(access, "down")
	if err != nil {
		return err
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute))
	var mu sync.Mutex
	seen := map[string]int{}
	sources := informer(up, func(key string) {
		mu.Lock()
		seen[key]++
		mu.Unlock()
		queue.Add(key)
	})
	copies := informer(down, func(key string) { queue.Add(key) })
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { sources.RunWithContext(ctx) })
	wg.Go(func() { copies.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), sources.HasSynced, copies.HasSynced) {
		return ctx.Err()
	}
	wg.Go(func() {
		<-ctx.Done()
		queue.ShutDown()
	})
	for {
		key, shut := queue.Get()
		if shut {
			return ctx.Err()
		}
		mu.Lock()
		n := seen[key]
		mu.Unlock()
		if err := c.reconcile(ctx, key, n, sources.GetStore(), copies.GetStore(), up, down); err != nil {
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}

func client(access perturb.Access, server string) (dynamic.ResourceInterface, error) {
	c, err := dynamic.NewForConfig(access(server))
	if err != nil {
		return nil, err
	}
	return c.Resource(configMaps).Namespace("default"), nil
}

func informer(objects dynamic.ResourceInterface, enqueue func(key string)) cache.SharedInformer {
	i := cache.NewSharedInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return objects.Watch(ctx, o)
		},
	}, &unstructured.Unstructured{}, 0)
	changed := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			enqueue(key)
		}
	}
	_, _ = i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, obj any) { changed(obj) }, DeleteFunc: changed})
	return i
}

func (c copier) reconcile(ctx context.Context, key string, seen int, sources, copies cache.Store, up, down dynamic.ResourceInterface) error {
	_, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	source, wanted, _ := sources.GetByKey(key)
	present, there, _ := copies.GetByKey(key)
	switch {
	case !wanted && !there, !wanted && c.awaitsDeletions && seen == 0:
		return nil
	case !wanted:
		copied := present.(*unstructured.Unstructured)
		uid, version := copied.GetUID(), copied.GetResourceVersion()
		err := down.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		return ignoreNotFound(err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "default", "name": name},
		"data":     source.(*unstructured.Unstructured).Object["data"],
	}}
	switch {
	case c.countsEvents:
		o.SetAnnotations(map[string]string{note: fmt.Sprint(seen)})
	case c.mixesReads:
		now, err := up.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return ignoreNotFound(err)
		}
		o.SetAnnotations(map[string]string{note: now.GetResourceVersion()})
	}
	if !there {
		_, err := down.Create(ctx, o, metav1.CreateOptions{})
		return err
	}
	old := present.(*unstructured.Unstructured)
	same := fmt.Sprint(old.Object["data"]) == fmt.Sprint(o.Object["data"])
	if o.GetAnnotations()[note] == old.GetAnnotations()[note] && (same || c.mixesReads) {
		return nil
	}
	o.SetResourceVersion(old.GetResourceVersion())
	_, err = down.Update(ctx, o, metav1.UpdateOptions{})
	if c.startsAnew && apierrors.IsConflict(err) {
		return errors.Join(err, down.Delete(ctx, name, metav1.DeleteOptions{}))
	}
	return err
}

// note is the annotation that the mistaken copier writes to a copy.
const note = "example.com/note"

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// scenario has a user who creates, changes and deletes ConfigMaps, and another who deletes a copy.
func scenario(c copier) perturb.Scenario {
	put := func(name, value string) func(context.Context, perturb.Access) error {
		return func(ctx context.Context, access perturb.Access) error {
			up, err := client(access, "up")
			if err != nil {
				return err
			}
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"namespace": "default", "name": name}, "data": map[string]any{"value": value},
			}}
			_, err = up.Apply(ctx, name, o, metav1.ApplyOptions{FieldManager: "user", Force: true})
			return err
		}
	}
	drop := func(server, name string) func(context.Context, perturb.Access) error {
		return func(ctx context.Context, access perturb.Access) error {
			objects, err := client(access, server)
			if err != nil {
				return err
			}
			return ignoreNotFound(objects.Delete(ctx, name, metav1.DeleteOptions{}))
		}
	}
	s := perturb.Scenario{
		Servers: func() (map[string]perturb.Server, error) {
			return map[string]perturb.Server{
				"up":   regiontest.NewServer(regiontest.Options{Name: "up"}),
				"down": regiontest.NewServer(regiontest.Options{Name: "down"}),
			}, nil
		},
		Loops: []perturb.Loop{{Name: "copier", Run: c.run, Single: true}},
		Script: []perturb.Step{
			{Name: "make a", Do: put("a", "1")},
			{Name: "make b", Do: put("b", "1")},
			{Name: "change a", Do: put("a", "2")},
			{Name: "delete the copy of a", Do: drop("down", "a")},
			{Name: "delete b", Do: drop("up", "b")},
		},
	}
	if c.mixesReads {
		s.Differ = []perturb.Field{{Resource: "configmaps", Path: "metadata.annotations[" + note + "]"}}
	}
	return s
}
