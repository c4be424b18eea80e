// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/examples/internal/stage"
	"github.com/atoll-dev/atoll/splitter"
)

// Requests per second by day and by night.
const (
	night = 30
	day   = 180
)

// apply attaches the clusters, and creates the objects upstream.
func (s *story) apply(ctx context.Context) error {
	s.traffic.set(night)
	for _, c := range s.Clusters {
		if _, err := s.of(syncTargets).Create(ctx, newSyncTarget(c.Name, c.Data), metav1.CreateOptions{FieldManager: "kubectl"}); err != nil {
			return err
		}
	}
	if err := stage.Await(ctx, "three ready clusters and the type Deployment", func(ctx context.Context) (bool, error) {
		list, err := s.of(syncTargets).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(list.Items, func(obj unstructured.Unstructured) bool { return !isTrue(&obj, "Ready") }) {
			return false, nil
		}
		_, err = s.of(deployments).List(ctx, metav1.ListOptions{})
		return err == nil, nil
	}); err != nil {
		return err
	}
	for _, a := range applied {
		obj, err := manifest(a.file)
		if err != nil {
			return err
		}
		if _, err := s.of(a.resource).Create(ctx, obj, metav1.CreateOptions{FieldManager: "kubectl"}); err != nil {
			return fmt.Errorf("create %s: %w", a.file, err)
		}
		if a.resource != policies {
			continue
		}
		if err := stage.Await(ctx, "three clusters of the policy", func(ctx context.Context) (bool, error) {
			obj, err := s.of(policies).Get(ctx, shop, metav1.GetOptions{})
			return err == nil && number(obj, "status", "clusters") == len(s.Clusters), err
		}); err != nil {
			return err
		}
	}
	if err := s.runs(ctx, minReplicas, names(s.Clusters)...); err != nil {
		return err
	}
	for _, c := range s.Clusters {
		if err := s.serves(ctx, c, true); err != nil {
			return err
		}
	}
	return stage.Await(ctx, "the budget", func(ctx context.Context) (bool, error) {
		obj, err := s.of(budgets).Get(ctx, shop, metav1.GetOptions{})
		return err == nil && isTrue(obj, "DisruptionAllowed") && number(obj, "status", "expectedPods") == minReplicas, err
	})
}

func (s *story) rise(ctx context.Context) error {
	s.traffic.set(day)
	return s.runs(ctx, s.enough(), names(s.Clusters)...)
}

func (s *story) fall(ctx context.Context) error {
	s.traffic.set(night)
	if err := s.runs(ctx, minReplicas, "cluster-2", "cluster-3"); err != nil {
		return err
	}
	return stage.Await(ctx, "six replicas", func(context.Context) (bool, error) { return s.sampler.now().present == minReplicas, nil })
}

// roll changes the image of the Deployment, and waits until all pods have the new one.
func (s *story) roll(ctx context.Context) error {
	const image = "registry.example.com/shop:2"
	if err := s.merge(ctx, deployments, shop, `{"spec":{"template":{"spec":{"containers":[{"name":"shop","image":"`+image+`","ports":[{"name":"http","containerPort":8080}]}]}}}}`); err != nil {
		return err
	}
	for _, c := range s.Clusters {
		if err := stage.Await(ctx, "the new image in "+c.Name, func(ctx context.Context) (bool, error) {
			list, err := in(c.Conn.Dynamic(), pods).List(ctx, metav1.ListOptions{LabelSelector: "app=" + shop})
			if err != nil {
				return false, err
			}
			return !slices.ContainsFunc(list.Items, func(pod unstructured.Unstructured) bool { return imageOf(&pod, "spec") != image }), nil
		}); err != nil {
			return err
		}
	}
	return s.runs(ctx, s.enough(), names(s.Clusters)...)
}

// lose cuts cluster-2 off, and waits until it has lost its part of the workload.
func (s *story) lose(ctx context.Context) error {
	s.Clusters[1].Link.Cut(true)
	if err := s.leaves(ctx, "cluster-2"); err != nil {
		return err
	}
	return s.runs(ctx, s.enough(), "cluster-1", "cluster-3")
}

// returns ends the loss of cluster-2, and waits until the cluster has a part of the workload again.
func (s *story) returns(ctx context.Context) error {
	// cluster-2 gets a third of minReplicas before the others reduce their parts.
	s.sampler.joining(minReplicas / 3)
	s.Clusters[1].Link.Cut(false)
	if err := stage.Await(ctx, "the end of the leftovers in cluster-2", func(context.Context) (bool, error) {
		now := s.sampler.now()
		return now.available[1] > 0 && now.left == 0, nil
	}); err != nil {
		return err
	}
	if err := s.runs(ctx, s.enough(), names(s.Clusters)...); err != nil {
		return err
	}
	s.sampler.joining(0)
	return nil
}

// drain moves everything off cluster-1.
func (s *story) drain(ctx context.Context) error {
	if err := s.merge(ctx, syncTargets, "cluster-1", `{"spec":{"evictAfter":"2020-01-01T00:00:00Z"}}`); err != nil {
		return err
	}
	if err := s.leaves(ctx, "cluster-1"); err != nil {
		return err
	}
	if err := s.runs(ctx, s.enough(), "cluster-2", "cluster-3"); err != nil {
		return err
	}
	return s.serves(ctx, s.Clusters[0], false)
}

// runs waits until at least n replicas are available, in exactly the named clusters, and the status of the workload
// upstream agrees.
func (s *story) runs(ctx context.Context, n int, clusters ...string) error {
	last := ""
	err := stage.Await(ctx, fmt.Sprintf("%d available replicas in %v", n, clusters), func(ctx context.Context) (bool, error) {
		obj, err := s.of(deployments).Get(ctx, shop, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		now := s.sampler.now()
		last = fmt.Sprintf("%+v of %v, status %v", now, obj.Object["spec"].(map[string]any)["replicas"], obj.Object["status"])
		desired := number(obj, "spec", "replicas")
		if now.total() != desired || desired < n || now.present != desired {
			return false, nil
		}
		for i, c := range s.Clusters {
			if slices.Contains(clusters, c.Name) != (now.available[i] > 0) {
				return false, nil
			}
		}
		for _, field := range []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"} {
			if number(obj, "status", field) != desired {
				return false, nil
			}
		}
		return int64(number(obj, "status", "observedGeneration")) == obj.GetGeneration(), nil
	})
	if err != nil {
		return fmt.Errorf("%w; last seen %s", err, last)
	}
	return nil
}

// leaves waits until the shard and the autoscaler of a cluster are gone upstream, or are being deleted.
func (s *story) leaves(ctx context.Context, cluster string) error {
	return stage.Await(ctx, "the workload leaves "+cluster, func(ctx context.Context) (bool, error) {
		obj, err := s.of(deployments).Get(ctx, splitter.ShardName(shop, cluster), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && obj.GetDeletionTimestamp() != nil, err
	})
}

// enough returns the least number of replicas to which the autoscalers add none.
func (s *story) enough() int {
	_, enough := s.traffic.needed()
	return enough
}

// serves waits until a cluster has the Service and the Ingress or, if want is false, until it has neither.
func (s *story) serves(ctx context.Context, c *stage.Cluster, want bool) error {
	for _, gvr := range []schema.GroupVersionResource{services, ingresses} {
		if err := stage.Await(ctx, fmt.Sprintf("%s in %s: %t", gvr.Resource, c.Name, want), func(ctx context.Context) (bool, error) {
			_, err := in(c.Conn.Dynamic(), gvr).Get(ctx, shop, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return !want, nil
			}
			return err == nil && want, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// drainNodes drains the fullest node in each of two clusters at the same time.
func (s *story) drainNodes(ctx context.Context) error {
	errs := make([]error, 2)
	var drains sync.WaitGroup
	for i, c := range s.Clusters[:2] {
		drains.Go(func() { errs[i] = s.drainNode(ctx, c) })
	}
	drains.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.runs(ctx, s.enough(), names(s.Clusters)...)
}

// drainNode cordons the node with the most pods of the workload and evicts these pods, as `kubectl drain` does. Then it
// uncordons the node.
func (s *story) drainNode(ctx context.Context, c *stage.Cluster) error {
	client := in(c.Conn.Dynamic(), nodes)
	all, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(all.Items) < 2 {
		return fmt.Errorf("%s has %d nodes: want at least two, one of which takes the pods of the other", c.Name, len(all.Items))
	}
	running, err := in(c.Conn.Dynamic(), pods).List(ctx, metav1.ListOptions{LabelSelector: "app=" + shop})
	if err != nil {
		return err
	}
	on := map[string]int{}
	fullest := ""
	for i := range running.Items {
		node, _, _ := unstructured.NestedString(running.Items[i].Object, "spec", "nodeName")
		on[node]++
		if on[node] > on[fullest] || on[node] == on[fullest] && node < fullest {
			fullest = node
		}
	}
	cordon := func(is bool) error {
		_, err := client.Patch(ctx, fullest, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, is), metav1.PatchOptions{FieldManager: "kubectl"})
		return err
	}
	if err := cordon(true); err != nil {
		return err
	}
	if err := s.evictAll(ctx, c, fullest); err != nil {
		return fmt.Errorf("drain node %s of %s: %w", fullest, c.Name, err)
	}
	return cordon(false)
}

// evictAll evicts the pods of the workload on a node until none is left.
func (s *story) evictAll(ctx context.Context, c *stage.Cluster, node string) error {
	for {
		list, err := in(c.Conn.Dynamic(), pods).List(ctx, metav1.ListOptions{LabelSelector: "app=" + shop, FieldSelector: "spec.nodeName=" + node})
		if err != nil || len(list.Items) == 0 {
			return err
		}
		for i := range list.Items {
			if err := s.evict(ctx, c, &list.Items[i]); err != nil && !apierrors.IsTooManyRequests(err) && !apierrors.IsNotFound(err) {
				return err
			}
		}
		select {
		case <-time.After(sampling): // the budget may refuse evictions for some time
		case <-ctx.Done():
			return fmt.Errorf("%d pods are left: %w", len(list.Items), context.Cause(ctx))
		}
	}
}

// evictPod asks an API server to evict a pod.
func evictPod(ctx context.Context, c *stage.Cluster, pod *unstructured.Unstructured) error {
	_, err := in(c.Conn.Dynamic(), pods).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": pod.GetName(), "namespace": pod.GetNamespace()},
	}}, metav1.CreateOptions{}, "eviction")
	return err
}

func names(clusters []*stage.Cluster) (all []string) {
	for _, c := range clusters {
		all = append(all, c.Name)
	}
	return all
}
