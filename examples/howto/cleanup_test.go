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

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

const bucketCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buckets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: buckets, singular: bucket, kind: Bucket, listKind: BucketList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

// buckets exist once: while one peer has a Bucket, each other peer has a guard of its name.
var buckets = fanout.Kind{
	Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "buckets"}, Kind: "Bucket", Namespaced: true,
	Claim: fanout.InAnnotation("example.com/claim"),
}

// cleanUp is the finalizer of the controller. It keeps a deleted Bucket, and its name in all peers, until its content is
// deleted.
const cleanUp = "example.com/clean-up"

// cleaner is the controller. It deletes the content of a Bucket before another peer can have a Bucket of the same name.
type cleaner struct {
	ring region.Directory
	// empty deletes the content. After a crash or an error it is called again.
	empty func(ctx context.Context, peer region.PeerName, name string) error
}

// Start runs until ctx ends. It watches each peer while the peer is in the ring.
func (c *cleaner) Start(ctx context.Context) error { return region.Engage(ctx, c.ring, c.watch) }

func (c *cleaner) watch(ctx context.Context, peer *region.Conn) error {
	all := peer.Dynamic().Resource(buckets.Resource)
	informer := cache.NewSharedInformer(&cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return all.Watch(ctx, o) },
	}, &unstructured.Unstructured{}, time.Minute) // a reconcile that failed is retried each minute
	reconcile := func(obj any) {
		if err := c.reconcile(ctx, peer, obj.(*unstructured.Unstructured).DeepCopy()); err != nil {
			log.Printf("peer %s: %v", peer.Peer(), err)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: reconcile, UpdateFunc: func(_, obj any) { reconcile(obj) }}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return err
	}
	informer.RunWithContext(ctx)
	return nil
}

func (c *cleaner) reconcile(ctx context.Context, peer *region.Conn, bucket *unstructured.Unstructured) error {
	state, err := buckets.State(bucket)
	if err != nil {
		return err
	}
	inEffect := state != nil && state.Stage == fanoutv1alpha1.StageConfigured // not a guard, nor a reservation of an add
	ours := slices.Contains(bucket.GetFinalizers(), cleanUp)
	switch deleted := bucket.GetDeletionTimestamp() != nil; {
	case inEffect && !deleted && !ours:
		bucket.SetFinalizers(append(bucket.GetFinalizers(), cleanUp)) // before the bucket has any content
	case deleted && ours:
		if err := c.empty(ctx, peer.Peer(), bucket.GetName()); err != nil {
			return err
		}
		bucket.SetFinalizers(slices.DeleteFunc(bucket.GetFinalizers(), func(f string) bool { return f == cleanUp }))
	default:
		return nil
	}
	_, err = peer.Dynamic().Resource(buckets.Resource).Namespace(bucket.GetNamespace()).Update(ctx, bucket, metav1.UpdateOptions{})
	return err
}

// A Bucket is removed in us-east. While its content is deleted, its name is taken; then eu-west may have it.
func Example_cleanUp() {
	ring := regiontest.NewRing("eu-west", "us-east", "ap-south") // in memory; region.NewRing connects to real peers
	defer ring.Close()
	crds, err1 := config.TypedCRDs()
	var crd apiextensionsv1.CustomResourceDefinition
	err2 := yaml.Unmarshal([]byte(bucketCRD), &crd)
	if err := errors.Join(err1, err2, ring.AddCRDs(append(crds, &crd)...)); err != nil {
		log.Panic(err)
	}
	ops, err := fanout.New(ring, waltest.NewMemory(), fanout.Options{Kinds: []fanout.Kind{buckets}}) // wal.Open has a log on disk
	if err != nil {
		log.Panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	add := func(to region.PeerName) error {
		photos := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Bucket", "metadata": map[string]any{"namespace": "default", "name": "photos"},
		}}
		_, err := ops.Add(ctx, photos, fanout.AddOptions{Target: to})
		return err
	}
	cleaner := &cleaner{ring, func(_ context.Context, peer region.PeerName, name string) error {
		fmt.Println("delete the content of", name, "in", peer)
		_, taken := errors.AsType[*fanout.HeldError](add("eu-west"))
		fmt.Println("the name is taken:", taken)
		return nil
	}}
	running, runs := errgroup.WithContext(ctx)
	running.Go(func() error { return cleaner.Start(runs) })

	if err := errors.Join(ops.InitPeers(ctx), add("us-east"), awaitFinalizer(ctx, ring)); err != nil {
		log.Panic(err)
	}
	op, err := ops.Remove(ctx, buckets.GroupKind(), types.NamespacedName{Namespace: "default", Name: "photos"}, fanout.RemoveOptions{})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("removed:", op.State)
	fmt.Println("eu-west gets the name:", add("eu-west") == nil)
	if err := ops.Wait(ctx); err != nil {
		log.Panic(err)
	}
	cancel()
	if err := running.Wait(); err != nil {
		log.Panic(err)
	}
	// Output:
	// delete the content of photos in us-east
	// the name is taken: true
	// removed: Done
	// eu-west gets the name: true
}

// awaitFinalizer waits until the Bucket has the finalizer. A removal before that would not wait for the clean-up.
func awaitFinalizer(ctx context.Context, ring region.Directory) error {
	peer, err := ring.Conn("us-east")
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		photos, err := peer.Dynamic().Resource(buckets.Resource).Namespace("default").Get(ctx, "photos", metav1.GetOptions{})
		return err == nil && slices.Contains(photos.GetFinalizers(), cleanUp), err
	})
}
