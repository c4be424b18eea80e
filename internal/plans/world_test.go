// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var (
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	syncTargets = syncerv1alpha1.GroupVersion.WithResource("synctargets")
	policies    = splitterv1alpha1.GroupVersion.WithResource("placementpolicies")
	wide        = splitterv1alpha1.GroupVersion.WithResource("clusterplacementpolicies")
	daemons     = splitterv1alpha1.GroupVersion.WithResource("clusterdaemonsets")
)

// resourceOf maps a kind in a script to its resource.
var resourceOf = map[string]schema.GroupVersionResource{
	"Namespace": namespaces, "ConfigMap": configMaps, "Service": services, "Deployment": deployments,
	"SyncTarget": syncTargets, "PlacementPolicy": policies, "ClusterPlacementPolicy": wide, "ClusterDaemonSet": daemons,
	"HorizontalPodAutoscaler":  autoscalers,
	"Secret":                   {Version: "v1", Resource: "secrets"},
	"RegionClaim":              {Group: "kubecarrier.io", Version: "v1alpha1", Resource: "regionclaims"},
	"ServiceCluster":           {Group: "kubecarrier.io", Version: "v1alpha1", Resource: "serviceclusters"},
	"Peer":                     {Group: "master.kubecarrier.io", Version: "v1alpha1", Resource: "peers"},
	"KubeCarrier":              {Group: "operator.kubecarrier.io", Version: "v1alpha1", Resource: "kubecarriers"},
	"Account":                  {Group: "catalog.kubecarrier.io", Version: "v1alpha1", Resource: "accounts"},
	"CustomResourceDefinition": {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
}

// inDefault lists the kinds whose manifests may omit the namespace default.
var inDefault = []string{"ConfigMap", "Service", "Deployment", "PlacementPolicy", "ClusterDaemonSet", "HorizontalPodAutoscaler"}

var compiled = sync.OnceValues(func() (*regiontest.Definitions, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, name := range []string{"synctargets.workload.kcp.io", "placementpolicies.splitter.atoll.dev", "clusterplacementpolicies.splitter.atoll.dev", "clusterdaemonsets.splitter.atoll.dev"} {
		crd, err := config.CRD(name)
		if err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	return regiontest.Compile(crds...)
})

// servers returns a func that makes an upstream with Atoll's CRDs, and a downstream server for each
// name.
func servers(downstream ...string) func() (map[string]perturb.Server, error) {
	return func() (map[string]perturb.Server, error) {
		definitions, err := compiled()
		if err != nil {
			return nil, err
		}
		all := map[string]perturb.Server{upstream: regiontest.NewServer(regiontest.Options{Name: upstream, Definitions: definitions})}
		for _, name := range downstream {
			all[name] = regiontest.NewServer(regiontest.Options{Name: name})
		}
		return all, nil
	}
}

const upstream = "up"

// client returns a client for a resource: in the namespace default, or cluster-wide.
func client(access perturb.Access, server string, gvr schema.GroupVersionResource) (dynamic.ResourceInterface, error) {
	c, err := dynamic.NewForConfig(access(server))
	if err != nil {
		return nil, err
	}
	if gvr == namespaces || gvr == syncTargets || gvr == wide {
		return c.Resource(gvr), nil
	}
	return c.Resource(gvr).Namespace("default"), nil
}

func objectOf(manifest string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
		return nil, fmt.Errorf("%s: %w", manifest, err)
	}
	return obj, nil
}

// decode returns the object of a manifest and the client for its resource at a server.
func decode(config *rest.Config, manifest string) (*unstructured.Unstructured, dynamic.ResourceInterface, error) {
	obj, err := objectOf(manifest)
	if err != nil {
		return nil, nil, err
	}
	if obj.GetNamespace() == "" && slices.Contains(inDefault, obj.GetKind()) {
		obj.SetNamespace("default")
	}
	gvr, ok := resourceOf[obj.GetKind()]
	if !ok {
		return nil, nil, fmt.Errorf("no resource is known for kind %q", obj.GetKind())
	}
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	return obj, c.Resource(gvr).Namespace(obj.GetNamespace()), nil
}

// applyTo applies an object as kubectl apply --server-side does, after any deletion of the object
// has ended.
func applyTo(ctx context.Context, config *rest.Config, manifest string) error {
	obj, c, err := decode(config, manifest)
	if err != nil {
		return err
	}
	if err := leaves(ctx, c, obj.GetName()); err != nil {
		return err
	}
	_, err = c.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "user", Force: true})
	return err
}

// put is a step in which a user applies a manifest.
func put(name, server, manifest string) perturb.Step {
	return perturb.Step{Name: name, Do: func(ctx context.Context, access perturb.Access) error {
		return applyTo(ctx, access(server), manifest)
	}}
}

// deletes is a step in which a user deletes the object of a manifest without waiting for its end.
func deletes(name, server, manifest string) perturb.Step {
	return perturb.Step{Name: name, Do: func(ctx context.Context, access perturb.Access) error {
		obj, c, err := decode(access(server), manifest)
		if err != nil {
			return err
		}
		return ignoreMissing(c.Delete(ctx, obj.GetName(), metav1.DeleteOptions{}))
	}}
}

func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// leaves waits for the end of an object that is being deleted.
func leaves(ctx context.Context, c dynamic.ResourceInterface, object string) error {
	for range maxWait {
		obj, err := c.Get(ctx, object, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && obj.GetDeletionTimestamp() == nil {
			return nil
		} else if err != nil {
			return err
		}
		time.Sleep(time.Minute)
	}
	return fmt.Errorf("%s is still being deleted after %d minutes", object, maxWait)
}

// drop is a step in which a user deletes an object and waits for its end, as kubectl does.
func drop(name, server string, gvr schema.GroupVersionResource, object string) perturb.Step {
	return perturb.Step{Name: name, Do: func(ctx context.Context, access perturb.Access) error {
		c, err := client(access, server, gvr)
		if err != nil {
			return err
		}
		present, err := c.Get(ctx, object, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return err
		}
		uid := present.GetUID()
		for range maxWait {
			err := c.Delete(ctx, object, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
				return nil // it is deleted, or another object has its name
			} else if err != nil {
				return err
			}
			time.Sleep(time.Minute)
		}
		return fmt.Errorf("%s %s at %s is still there after %d minutes", gvr.Resource, object, server, maxWait)
	}}
}

// maxWait is how many minutes a user waits for the end of an object. It is longer than each fault.
const maxWait = 180

// strike is a step in which a user deletes an object that a loop must create again.
func strike(name, server string, gvr schema.GroupVersionResource, object string) perturb.Step {
	return perturb.Step{Name: name, Do: func(ctx context.Context, access perturb.Access) error {
		c, err := client(access, server, gvr)
		if err != nil {
			return err
		}
		return ignoreMissing(c.Delete(ctx, object, metav1.DeleteOptions{}))
	}}
}

// change is a step in which a user merges JSON into an object. It does nothing if the object is
// missing.
func change(name, server string, gvr schema.GroupVersionResource, object, patch string) perturb.Step {
	return perturb.Step{Name: name, Do: func(ctx context.Context, access perturb.Access) error {
		c, err := client(access, server, gvr)
		if err != nil {
			return err
		}
		_, err = c.Patch(ctx, object, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
		return ignoreMissing(err)
	}}
}

// later is a step that only waits.
func later(name string, d time.Duration) perturb.Step {
	return perturb.Step{Name: name, Do: func(context.Context, perturb.Access) error {
		time.Sleep(d)
		return nil
	}}
}

// get returns an object, nil if it does not exist.
func get(ctx context.Context, access perturb.Access, server string, gvr schema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
	c, err := client(access, server, gvr)
	if err != nil {
		return nil, err
	}
	obj, err := c.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}

// restart is how long a loop is stopped after a crash, while users continue. It is not a multiple
// of Quiet, so that no step of a user happens at the moment of a restart.
const restart = 3*time.Minute + 20*time.Second

// check checks the end state of a run.
type check func(ctx context.Context, access perturb.Access) error

func all(checks ...check) check {
	return func(ctx context.Context, access perturb.Access) error {
		var errs []error
		for _, c := range checks {
			errs = append(errs, c(ctx, access))
		}
		return errors.Join(errs...)
	}
}

// has checks that an object has a value in a field.
func has(server string, gvr schema.GroupVersionResource, name string, value any, path ...string) check {
	return func(ctx context.Context, access perturb.Access) error {
		obj, err := get(ctx, access, server, gvr, name)
		if err != nil {
			return err
		}
		if obj == nil {
			return fmt.Errorf("there is no %s %s at %s", gvr.Resource, name, server)
		}
		if found, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...); !reflect.DeepEqual(found, value) {
			return fmt.Errorf("%s %s at %s has %s %v, not %v", gvr.Resource, name, server, strings.Join(path, "."), found, value)
		}
		return nil
	}
}

// absent checks that an object does not exist.
func absent(server string, gvr schema.GroupVersionResource, name string) check {
	return func(ctx context.Context, access perturb.Access) error {
		obj, err := get(ctx, access, server, gvr, name)
		if err == nil && obj != nil {
			err = fmt.Errorf("%s %s at %s is still there", gvr.Resource, name, server)
		}
		return err
	}
}

// starts returns a Loop that calls the method Start of the result of made.
func starts(name string, made func(access perturb.Access) (interface{ Start(context.Context) error }, error)) perturb.Loop {
	return perturb.Loop{Name: name, Restart: restart, Run: func(ctx context.Context, access perturb.Access) error {
		s, err := made(access)
		if err != nil {
			return err
		}
		return s.Start(ctx)
	}}
}

// api returns a server's region.API for the constructors.
func api(access perturb.Access, server string) (region.API, error) {
	return region.APIFor(access(server))
}

// clusterOf is the prefix of the names of loops that play the controllers of a cluster. These loops
// are not under test.
const clusterOf = "cluster "

// workloads is the loop that, like the Deployment controller, reports all replicas of each
// Deployment of a server as available.
func workloads(server string) perturb.Loop {
	return reports(clusterOf+server, server, deployments, func(*unstructured.Unstructured) bool { return true }, availableStatus)
}

// shards is the loop that reports all replicas of each shard in the upstream as available, in
// scenarios without a syncer.
func shards() perturb.Loop {
	isShard := func(obj *unstructured.Unstructured) bool { return obj.GetLabels()[splitterv1alpha1.ParentLabel] != "" }
	return reports(clusterOf+"shards", upstream, deployments, isShard, availableStatus)
}

// readyTargets is the loop that reports each SyncTarget as ready, in scenarios without a syncer.
func readyTargets() perturb.Loop {
	all := func(*unstructured.Unstructured) bool { return true }
	return reports(clusterOf+"targets", upstream, syncTargets, all, func(obj *unstructured.Unstructured) map[string]any {
		if conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions"); len(conditions) > 0 {
			return nil
		}
		return map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Syncing", "message": "", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}}}
	})
}

func availableStatus(obj *unstructured.Unstructured) map[string]any {
	if observed, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); observed == obj.GetGeneration() {
		return nil
	}
	replicas, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	return map[string]any{
		"observedGeneration": obj.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
		"conditions": []any{map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}},
	}
}

// reports returns a loop that writes the status of objects of a resource. of selects the objects.
// status returns the wanted status, or nil if no write is needed.
func reports(name, server string, gvr schema.GroupVersionResource, of func(*unstructured.Unstructured) bool, status func(*unstructured.Unstructured) map[string]any) perturb.Loop {
	return perturb.Loop{Name: name, Single: true, Run: func(ctx context.Context, access perturb.Access) error {
		cluster, err := api(access, server)
		if err != nil {
			return err
		}
		return watching(ctx, cluster.Dynamic(), gvr, func(ctx context.Context, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
			if !of(obj) {
				return nil
			}
			now := status(obj)
			if now == nil {
				return nil
			}
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion()}, "status": now})
			if err != nil {
				return err
			}
			_, err = c.Patch(ctx, obj.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "cluster"}, "status")
			return err
		})
	}}
}

// autoscaler is the loop that sets the replicas of a server's Deployments: three with the image
// web:2, else five.
func autoscaler(server string) perturb.Loop {
	return perturb.Loop{Name: clusterOf + "autoscaler", Single: true, Run: func(ctx context.Context, access perturb.Access) error {
		cluster, err := api(access, server)
		if err != nil {
			return err
		}
		return watching(ctx, cluster.Dynamic(), deployments, func(ctx context.Context, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
			containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
			replicas := int64(5)
			if containers[0].(map[string]any)["image"] == "web:2" {
				replicas = 3
			}
			if present, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); present == replicas {
				return nil
			}
			patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"replicas":%d}}`, obj.GetUID(), obj.GetResourceVersion(), replicas)
			_, err := c.Patch(ctx, obj.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "autoscaler"})
			return err
		})
	}}
}

// watching calls work for each object of a resource and for each change, until ctx ends.
func watching(ctx context.Context, d dynamic.Interface, gvr schema.GroupVersionResource, work func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) error) error {
	queue := loop.NewQueue(loop.QueueOptions{Workers: 1})
	objects := loop.NewObjects(d, gvr, loop.ObjectsOptions{
		Strip:   func(*unstructured.Unstructured) {},
		Changed: func(key types.NamespacedName) { queue.Add(loop.KeyText(key)) },
	})
	var copies sync.WaitGroup
	defer copies.Wait()
	copies.Go(func() { _ = objects.Start(ctx) })
	return queue.Start(ctx, func(ctx context.Context, key string) (time.Duration, error) {
		obj, ok := objects.Get(loop.ParseKey(key))
		if !ok {
			return 0, nil
		}
		err := work(ctx, d.Resource(gvr).Namespace(obj.GetNamespace()), obj)
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return 0, nil // its event follows
		}
		return 0, err
	})
}
