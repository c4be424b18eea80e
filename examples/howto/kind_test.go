// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package howto_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
)

// caches is the Kind of Caches. The memory of a Cache is divided over the clusters. Its status has the sum of the used
// memory.
type caches struct{}

func (caches) Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "caches"}
}

func (caches) Cut(parent *unstructured.Unstructured, d splitter.Demand, shares []splitter.Share, have []splitter.Shard) (splitter.Plan, []splitter.Shard, error) {
	var err error
	if d.Replicas, _, err = unstructured.NestedInt64(parent.Object, "spec", "memoryGiB"); err != nil {
		return splitter.Plan{}, nil, err
	}
	present := map[string]int64{}
	for _, s := range have {
		if s.Object != nil && s.Object.GetDeletionTimestamp() == nil {
			present[s.Cluster], _, _ = unstructured.NestedInt64(s.Object.Object, "spec", "memoryGiB")
		}
	}
	plan, err := splitter.Divide(d, withPresent(shares, present))
	if err != nil {
		return splitter.Plan{}, nil, err
	}
	var shards []splitter.Shard
	for _, a := range plan.Shards {
		if a.Replicas == 0 {
			continue
		}
		spec := runtime.DeepCopyJSON(parent.Object["spec"].(map[string]any))
		spec["memoryGiB"] = a.Replicas
		shards = append(shards, splitter.Shard{Cluster: a.Cluster, Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": parent.GetAPIVersion(), "kind": parent.GetKind(), "spec": spec,
		}}})
	}
	return plan, shards, nil
}

// withPresent sets Present of the clusters in shares, which may be grouped by zones. A cluster keeps its memory if it no
// longer has room for it.
func withPresent(shares []splitter.Share, present map[string]int64) []splitter.Share {
	shares = slices.Clone(shares)
	for i := range shares {
		s := &shares[i]
		if s.Group {
			s.Members = withPresent(s.Members, present)
			continue
		}
		s.Present = present[s.Name]
		if s.Capacity != nil {
			s.Capacity = new(max(*s.Capacity, s.Present))
		}
	}
	return shares
}

func (caches) Fold(_ *unstructured.Unstructured, shards []splitter.Shard) (map[string]any, error) {
	var used int64
	for _, s := range shards {
		if s.Object != nil {
			n, _, err := unstructured.NestedInt64(s.Object.Object, "status", "usedGiB")
			if err != nil {
				return nil, fmt.Errorf("cluster %s: %w", s.Cluster, err)
			}
			used += n
		}
	}
	return map[string]any{"usedGiB": used}, nil
}

const cachesCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: caches.example.com}
spec:
  group: example.com
  names: {plural: caches, singular: cache, kind: Cache, listKind: CacheList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {memoryGiB: {type: integer}, image: {type: string}}}
          status: {type: object, properties: {usedGiB: {type: integer}}}
`

// A Cache of 30 GiB is divided over two clusters. Each of them reports that it uses 4 GiB.
func Example_kind() {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(cachesCRD), crd); err != nil {
		log.Panic(err)
	}
	server := regiontest.NewServer(regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
	defer server.Close()
	api, err := region.APIFor(server.Config())
	if err != nil {
		log.Panic(err)
	}
	split, err := splitter.New(api, splitter.StaticClusters("eu-1", "us-1"), splitter.Options{Kinds: []splitter.Kind{caches{}}})
	if err != nil {
		log.Panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- split.Start(ctx) }()
	err = useCaches(ctx, api.Dynamic().Resource(caches{}.Resource()).Namespace("default"))
	cancel()
	if err := errors.Join(err, <-ended); err != nil {
		log.Panic(err)
	}
	// Output:
	// sessions--eu-1: 15 GiB
	// sessions--us-1: 15 GiB
	// sessions: 8 of 30 GiB used
}

func useCaches(ctx context.Context, client dynamic.ResourceInterface) error {
	sessions := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Cache", "metadata": map[string]any{"name": "sessions"},
		"spec": map[string]any{"memoryGiB": int64(30), "image": "redis:8"},
	}}
	if _, err := client.Create(ctx, sessions, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, cluster := range []string{"eu-1", "us-1"} {
		name := splitter.ShardName("sessions", cluster)
		shard, err := until(ctx, client, name, func(*unstructured.Unstructured) bool { return true })
		if err != nil {
			return err
		}
		gib, _, _ := unstructured.NestedInt64(shard.Object, "spec", "memoryGiB")
		fmt.Printf("%s: %d GiB\n", name, gib)
		report := []byte(`{"status":{"usedGiB":4}}`) // a syncer does this
		if _, err := client.Patch(ctx, name, types.MergePatchType, report, metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	_, err := until(ctx, client, "sessions", func(obj *unstructured.Unstructured) bool {
		used, _, _ := unstructured.NestedInt64(obj.Object, "status", "usedGiB")
		return used == 8
	})
	if err == nil {
		fmt.Println("sessions: 8 of 30 GiB used")
	}
	return err
}

// until waits for an object that done accepts.
func until(ctx context.Context, client dynamic.ResourceInterface, name string, done func(*unstructured.Unstructured) bool) (obj *unstructured.Unstructured, err error) {
	err = wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var failed error
		obj, failed = client.Get(ctx, name, metav1.GetOptions{})
		return failed == nil && done(obj), nil
	})
	return obj, err
}
