// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router/aggregate"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// world is a set of regions, each an API server.
type world struct {
	t       testing.TB
	keys    []region.Key
	servers map[region.Key]*regiontest.Server
	clients map[region.Key]dynamic.Interface
	set     *aggregate.Members
}

// newWorld returns a world with the regions r0.loodse, r1.loodse and so on.
func newWorld(t testing.TB, n int) *world {
	t.Helper()
	w := &world{t: t, servers: map[region.Key]*regiontest.Server{}, clients: map[region.Key]dynamic.Interface{}}
	for i := range n {
		k := key(i)
		w.keys = append(w.keys, k)
		w.servers[k] = regiontest.NewServer(regiontest.Options{Name: k.String()})
		client, err := dynamic.NewForConfig(w.servers[k].Config())
		require.NoError(t, err)
		w.clients[k] = client
	}
	set, err := aggregate.Fixed(w.members(w.keys...)...)
	require.NoError(t, err)
	w.set = set
	return w
}

func key(i int) region.Key { return region.Key{Provider: "loodse", Name: fmt.Sprintf("r%d", i)} }

func (w *world) close() {
	for _, s := range w.servers {
		s.Close()
	}
}

func (w *world) members(keys ...region.Key) []aggregate.Member {
	var members []aggregate.Member
	for _, k := range keys {
		raw, err := region.RESTFor(w.servers[k].Config())
		require.NoError(w.t, err)
		members = append(members, aggregate.Member{Region: k, Client: w.clients[k], REST: raw})
	}
	return members
}

func (w *world) api(opts aggregate.Options) *aggregate.API {
	w.t.Helper()
	api, err := aggregate.New(w.set, opts)
	require.NoError(w.t, err)
	return api
}

// partial returns a context whose reads do with the regions that answer.
func partial(ctx context.Context) context.Context {
	return aggregate.WithPolicy(ctx, aggregate.BestEffort())
}

func (w *world) put(k region.Key, names ...string) {
	w.t.Helper()
	for _, name := range names {
		_, err := w.clients[k].Resource(configMaps).Namespace("default").Create(w.t.Context(), configMap(name, "0"), metav1.CreateOptions{})
		require.NoError(w.t, err)
	}
}

func configMap(name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": "default", "labels": map[string]any{"app": "test"}},
		"data":     map[string]any{"value": value},
	}}
}

// in sets the region annotation of o and returns o.
func in(k region.Key, o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetAnnotations(map[string]string{aggregate.RegionAnnotation: k.String()})
	return o
}

// id returns REGION/NAME of an object.
func id(o *unstructured.Unstructured) string {
	return o.GetAnnotations()[aggregate.RegionAnnotation] + "/" + o.GetName()
}
