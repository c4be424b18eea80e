// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/syncer"
)

const (
	upstream = "up"
	// clusterOf is the prefix of the names of loops that play the controllers of a cluster.
	clusterOf = "cluster "
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	resourceOf  = map[string]schema.GroupVersionResource{"ConfigMap": configMaps, "Deployment": deployments}
)

// server is a plane. Each run uses the namespace default of the plane, after clear has deleted the
// objects of the previous run there.
type server struct{ *plane.Plane }

// clear deletes the ConfigMaps and Deployments of the previous run.
func (s server) clear(ctx context.Context) error {
	d, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		return err
	}
	for _, gvr := range resourceOf {
		c := d.Resource(gvr).Namespace("default")
		list, err := c.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, obj := range list.Items {
			_, err := c.Patch(ctx, obj.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			if err == nil {
				err = c.Delete(ctx, obj.GetName(), metav1.DeleteOptions{})
			}
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

func settings(cluster, value string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {workloads.kcp.io/cluster: %s}}, data: {value: %s}}", cluster, value)
}

func web(replicas int, image string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "%s"}]}}
`, replicas, image)
}

func only(resources ...schema.GroupVersionResource) syncer.TypeFilter {
	return func(gr schema.GroupResource) bool {
		for _, r := range resources {
			if r.GroupResource() == gr {
				return true
			}
		}
		return false
	}
}

func api(access perturb.Access, name string) (region.API, error) { return region.APIFor(access(name)) }

func client(access perturb.Access, name string, gvr schema.GroupVersionResource) (dynamic.ResourceInterface, error) {
	d, err := dynamic.NewForConfig(access(name))
	if err != nil {
		return nil, err
	}
	return d.Resource(gvr).Namespace("default"), nil
}

// apply is a step in which a user applies a manifest upstream, after any deletion of the object has
// ended.
func apply(name, manifest string) perturb.Step {
	return perturb.Step{Name: name, Do: func(ctx context.Context, access perturb.Access) error {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
			return err
		}
		c, err := client(access, upstream, resourceOf[obj.GetKind()])
		if err != nil {
			return err
		}
		if err := await(ctx, c, obj.GetName(), func(present *unstructured.Unstructured) bool {
			return present == nil || present.GetDeletionTimestamp() == nil
		}); err != nil {
			return err
		}
		_, err = c.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "user", Force: true})
		return err
	}}
}

// remove is a step in which a user deletes an object upstream and waits until the object is gone,
// as kubectl does.
func remove(name string, gvr schema.GroupVersionResource, object string) perturb.Step {
	return perturb.Step{Name: name, Do: func(ctx context.Context, access perturb.Access) error {
		c, err := client(access, upstream, gvr)
		if err != nil {
			return err
		}
		if err := c.Delete(ctx, object, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return await(ctx, c, object, func(present *unstructured.Unstructured) bool { return present == nil })
	}}
}

// await reads an object until the predicate accepts the object. The predicate gets nil if the
// object is missing.
func await(ctx context.Context, c dynamic.ResourceInterface, name string, is func(*unstructured.Unstructured) bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		obj, err := c.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			obj, err = nil, nil
		}
		if err != nil || is(obj) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", name, context.Cause(ctx))
		}
	}
}

func has(ctx context.Context, access perturb.Access, at string, gvr schema.GroupVersionResource, name string, value any, path ...string) error {
	c, err := client(access, at, gvr)
	if err != nil {
		return err
	}
	obj, err := c.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	if found, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...); !reflect.DeepEqual(found, value) {
		return fmt.Errorf("%s %s at %s has %v %v, not %v", gvr.Resource, name, at, path, found, value)
	}
	return nil
}

func absent(ctx context.Context, access perturb.Access, gvr schema.GroupVersionResource, name string, servers ...string) error {
	for _, at := range servers {
		c, err := client(access, at, gvr)
		if err != nil {
			return err
		}
		if _, err := c.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s %s is at %s: %w", gvr.Resource, name, at, err)
		}
	}
	return nil
}

// reporting returns a loop that plays the controllers of a cluster: it reports all replicas of each
// Deployment as available.
func reporting(cluster string) perturb.Loop {
	return perturb.Loop{Name: clusterOf + cluster, Single: true, Run: func(ctx context.Context, access perturb.Access) error {
		c, err := client(access, cluster, deployments)
		if err != nil {
			return err
		}
		for {
			list, err := c.List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range list.Items {
				if err := report(ctx, c, &list.Items[i]); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
					return err
				}
			}
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
				return nil
			}
		}
	}}
}

func report(ctx context.Context, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
	if observed, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); observed == obj.GetGeneration() {
		return nil
	}
	replicas, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion()},
		"status": map[string]any{
			"observedGeneration": obj.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
			"conditions": []any{map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}},
		},
	})
	if err != nil {
		return err
	}
	_, err = c.Patch(ctx, obj.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "cluster"}, "status")
	return err
}
