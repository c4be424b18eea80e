// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// A merged list reports the region of a frozen API server as missing, by name. A get of an object
// fails instead of reporting the object as not found. A list of the frozen region alone fails. When
// the server continues, its events arrive again.
func TestFrozenRegion(t *testing.T) {
	planes := planetest.Shared(t, 2)
	namespace := planetest.Namespace(t, planes...)
	eu, us := region.Key{Provider: "loodse", Name: "eu"}, region.Key{Provider: "loodse", Name: "us"}
	source, err := region.FromPeers(planetest.Peer(t, planes[0], eu), planetest.Peer(t, planes[1], us))
	require.NoError(t, err)
	ring, err := region.NewRing(source, region.Options{Probe: region.ProbeOptions{Interval: time.Second, Timeout: time.Second}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ring.Start(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()
	<-ring.Synced()
	routes, err := router.New(ring, router.Options{})
	require.NoError(t, err)
	resource := func(keep func(region.Key) bool) *aggregate.API {
		set, err := aggregate.Regions(routes, router.Self(), keep)
		require.NoError(t, err)
		api, err := aggregate.New(set, aggregate.Options{Qualify: true})
		require.NoError(t, err)
		return api
	}
	all := resource(nil).Dynamic().Resource(configMaps).Namespace(namespace)
	only := resource(func(k region.Key) bool { return k == us }).Dynamic().Resource(configMaps).Namespace(namespace)
	stream, err := all.Watch(ctx, metav1.ListOptions{LabelSelector: "app=frozen"})
	require.NoError(t, err)
	defer stream.Stop()

	require.NoError(t, planes[1].Pause(ctx))
	defer func() { require.NoError(t, planes[1].Resume(context.WithoutCancel(ctx))) }()
	planetest.Eventually(t, settle, "the region is unreachable", func(context.Context) error {
		if !routes.Health(us).Unreachable() {
			return errors.New("it is not yet")
		}
		return nil
	})
	partial := aggregate.WithPolicy(ctx, aggregate.BestEffort())
	reported, report := aggregate.WithReport(partial)
	_, err = all.List(reported, metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"region us.loodse: Unreachable"}, report.Warnings())
	_, err = only.List(partial, metav1.ListOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), "no region answers: %v", err)
	for _, name := range []string{"x", "x@us.loodse"} {
		_, err = all.Get(partial, name, metav1.GetOptions{})
		require.True(t, apierrors.IsServiceUnavailable(err), "%s: %v", name, err)
	}

	require.NoError(t, planes[1].Resume(ctx))
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "labels": map[string]any{"app": "frozen"}},
	}}
	_, err = planetest.Dynamic(t, planes[1].Config()).Resource(configMaps).Namespace(namespace).Create(ctx, o, metav1.CreateOptions{})
	require.NoError(t, err)
	deadline := time.After(settle)
	select {
	case e := <-stream.ResultChan():
		require.Equal(t, watch.Added, e.Type)
		require.Equal(t, "x@us.loodse", nameOf(e))
	case <-deadline:
		t.Fatal("no event came")
	}
	planetest.Eventually(t, settle, "the list is complete", func(ctx context.Context) error {
		ctx, report := aggregate.WithReport(ctx)
		_, err := all.List(ctx, metav1.ListOptions{})
		return errors.Join(err, map[bool]error{false: errors.New("a region is missing")}[report.Complete()])
	})
}

func nameOf(e watch.Event) string {
	if o, ok := e.Object.(*unstructured.Unstructured); ok {
		return o.GetName()
	}
	return ""
}
