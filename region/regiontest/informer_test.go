// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

func newInformer(w dynamic.ResourceInterface) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) { return w.List(ctx, opts) },
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return w.Watch(ctx, opts)
		},
	}, &unstructured.Unstructured{}, 0, nil)
}

func TestInformerFollowsThroughPartitionsAndCompactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newWidgets(t)
		_, err := w.Create(t.Context(), widget("before", 1), metav1.CreateOptions{})
		require.NoError(t, err)
		informer := newInformer(w)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); informer.RunWithContext(ctx) }()
		time.Sleep(time.Second)
		require.True(t, informer.HasSynced())
		require.Equal(t, []string{"default/before"}, informer.GetStore().ListKeys())

		_, err = w.Create(t.Context(), widget("during", 1), metav1.CreateOptions{})
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Len(t, informer.GetStore().ListKeys(), 2)

		s.Partition(true)
		time.Sleep(10 * time.Minute)
		require.Len(t, informer.GetStore().ListKeys(), 2, "absence is not deletion")
		s.Partition(false)
		require.NoError(t, w.Delete(t.Context(), "before", metav1.DeleteOptions{}))
		s.Compact()
		time.Sleep(10 * time.Minute)
		require.Equal(t, []string{"default/during"}, informer.GetStore().ListKeys())
		cancel()
		<-done
	})
}

func TestBookmarksMoveAWatchOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, w := newWidgets(t)
		seconds := int64(150)
		events, err := w.Watch(t.Context(), metav1.ListOptions{AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
		require.NoError(t, err)
		defer events.Stop()
		begun := time.Now()
		var got []watch.EventType
		for event := range events.ResultChan() {
			got = append(got, event.Type)
		}
		require.Equal(t, []watch.EventType{watch.Bookmark, watch.Bookmark, watch.Bookmark}, got)
		require.Equal(t, 150*time.Second, time.Since(begun))
	})
}
