// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/atoll-dev/atoll/examples/internal/stage"
)

// deploymentLabel is on each pod of a cluster in memory. It has the UID of the pod's Deployment.
const deploymentLabel = "deployment"

// roll plays the Deployment controller, the scheduler and the nodes: each Deployment gets pods, which are ready one tick
// after their creation. Pods with another image are replaced within maxUnavailable and maxSurge. Pods without a Deployment
// are deleted.
func roll(ctx context.Context, c *stage.Cluster) error {
	node, err := freeNode(ctx, c)
	if err != nil {
		return err
	}
	list, err := in(c.Conn.Dynamic(), deployments).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	running, err := in(c.Conn.Dynamic(), pods).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	of := map[string][]*unstructured.Unstructured{}
	for i := range running.Items {
		owner := running.Items[i].GetLabels()[deploymentLabel]
		of[owner] = append(of[owner], &running.Items[i])
	}
	var errs []error
	for i := range list.Items {
		obj := &list.Items[i]
		if obj.GetDeletionTimestamp() != nil {
			continue
		}
		errs = append(errs, rollOne(ctx, c, obj, of[string(obj.GetUID())], node))
		delete(of, string(obj.GetUID()))
	}
	for _, orphans := range of {
		errs = append(errs, deletePods(ctx, c, orphans))
	}
	return errors.Join(errs...)
}

// freeNode returns the node that takes new pods: the first one that is not cordoned.
func freeNode(ctx context.Context, c *stage.Cluster) (string, error) {
	list, err := in(c.Conn.Dynamic(), nodes).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for _, node := range list.Items {
		if cordoned, _, _ := unstructured.NestedBool(node.Object, "spec", "unschedulable"); !cordoned {
			return node.GetName(), nil
		}
	}
	return "", errors.New("all nodes are cordoned")
}

func rollOne(ctx context.Context, c *stage.Cluster, obj *unstructured.Unstructured, running []*unstructured.Unstructured, node string) error {
	var updated, old []*unstructured.Unstructured
	available := 0
	for _, pod := range running {
		if isTrue(pod, "Ready") {
			available++
		} else if err := report(ctx, c, pod, map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}); err != nil {
			return err
		}
		if imageOf(pod, "spec") == imageOf(obj, "spec", "template", "spec") {
			updated = append(updated, pod)
		} else {
			old = append(old, pod)
		}
	}
	replicas := number(obj, "spec", "replicas")
	if err := report(ctx, c, obj, statusOf(obj, replicas, len(running), len(updated), available)); err != nil {
		return err
	}
	unavailable, surge := number(obj, "spec", "strategy", "rollingUpdate", "maxUnavailable"), number(obj, "spec", "strategy", "rollingUpdate", "maxSurge")
	most := replicas
	if len(old) > 0 {
		most += surge
	}
	for range min(replicas-len(updated), most-len(running)) {
		if err := createPod(ctx, c, obj, node); err != nil {
			return err
		}
	}
	// Pods that are not ready go first, and the others as long as enough are available.
	doomed := slices.Concat(old, updated[min(len(updated), replicas):])
	slices.SortStableFunc(doomed, func(a, b *unstructured.Unstructured) int {
		return order(isTrue(a, "Ready")) - order(isTrue(b, "Ready"))
	})
	spare := max(available-(replicas-unavailable), len(running)-most)
	return deletePods(ctx, c, doomed[:min(len(doomed), max(0, spare))])
}

func order(ready bool) int {
	if ready {
		return 1
	}
	return 0
}

func statusOf(obj *unstructured.Unstructured, replicas, running, updated, available int) map[string]any {
	progress := map[string]any{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}
	if updated == replicas && available == replicas && running == replicas {
		progress["reason"] = "NewReplicaSetAvailable"
	}
	return map[string]any{
		"observedGeneration": obj.GetGeneration(), "replicas": int64(running), "updatedReplicas": int64(updated),
		"readyReplicas": int64(available), "availableReplicas": int64(available), "unavailableReplicas": int64(max(0, replicas-available)),
		"conditions": []any{progress},
	}
}

func createPod(ctx context.Context, c *stage.Cluster, obj *unstructured.Unstructured, node string) error {
	spec, _, _ := unstructured.NestedMap(obj.Object, "spec", "template", "spec")
	labels, _, _ := unstructured.NestedStringMap(obj.Object, "spec", "template", "metadata", "labels")
	spec["nodeName"] = node
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": spec}}
	labels[deploymentLabel] = string(obj.GetUID())
	pod.SetName(obj.GetName() + "-" + rand.String(8))
	pod.SetLabels(labels)
	_, err := in(c.Conn.Dynamic(), pods).Create(ctx, pod, metav1.CreateOptions{FieldManager: "controller"})
	if err != nil {
		return fmt.Errorf("create a pod of %s: %w", obj.GetName(), err)
	}
	return nil
}

func deletePods(ctx context.Context, c *stage.Cluster, doomed []*unstructured.Unstructured) error {
	for _, pod := range doomed {
		uid := pod.GetUID()
		if err := deletePod(ctx, c, pod.GetName(), uid); err != nil {
			return err
		}
	}
	return nil
}

func deletePod(ctx context.Context, c *stage.Cluster, name string, uid types.UID) error {
	return in(c.Conn.Dynamic(), pods).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: new(int64(0))})
}
