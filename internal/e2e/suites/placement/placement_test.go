// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/clustertest"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

const (
	long = 3 * time.Minute
	// still is the time without any write after which the loops count as at rest.
	still = 5 * time.Second
)

// manifests contains a workload and all objects that its pods refer to.
const manifests = `
apiVersion: splitter.atoll.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: one}
spec: {maxClusters: 1, dependents: true, spreadBy: [topology.kubernetes.io/zone]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {theirs: stays}}
data: {key: value}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}, tls: [{secretName: tls}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec: {podSelector: {matchExpressions: [{key: app, operator: In, values: [web]}]}}
---
apiVersion: v1
kind: Secret
metadata: {name: tls}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 4}}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: robot
      containers:
      - {name: web, image: web, envFrom: [{configMapRef: {name: settings}}], env: [{name: K, valueFrom: {secretKeyRef: {name: key, key: k}}}]}
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`

// undivided contains objects that belong to the workload and are not placed.
const undivided = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: %[1]s}
spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: %[1]s}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
`

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	policies    = v1alpha1.GroupVersion.WithResource("placementpolicies")
	dependents  = []dependent{
		core("configmaps", "settings"), core("secrets", "key"), core("secrets", "tls"), core("serviceaccounts", "robot"), core("persistentvolumeclaims", "data"), core("services", "web"),
		networking("ingresses", "web"), networking("networkpolicies", "web"),
	}
)

// dependent names an object that follows the Deployment.
type dependent struct {
	schema.GroupVersionResource

	name string
}

func core(resource, name string) dependent {
	return dependent{schema.GroupVersionResource{Version: "v1", Resource: resource}, name}
}

func networking(resource, name string) dependent {
	return dependent{schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: resource}, name}
}

type world struct {
	t         *testing.T
	api       region.API
	namespace string
}

func (w *world) start(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(w.t, <-done)
	})
	w.t.Cleanup(stop)
	return stop
}

func (w *world) get(ctx context.Context, gvr schema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
	return w.api.Dynamic().Resource(gvr).Namespace(w.namespace).Get(ctx, name, metav1.GetOptions{})
}

func (w *world) patch(gvr schema.GroupVersionResource, name string, content any, subresources ...string) {
	w.t.Helper()
	data, err := json.Marshal(content)
	require.NoError(w.t, err)
	_, err = w.api.Dynamic().Resource(gvr).Namespace(w.namespace).Patch(w.t.Context(), name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: "test"}, subresources...)
	require.NoError(w.t, err)
}

// works reports the status of a shard as a syncer would.
func (w *world) works(name string, available int64) {
	w.t.Helper()
	obj, err := w.get(w.t.Context(), deployments, name)
	require.NoError(w.t, err)
	wanted, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	w.patch(deployments, name, map[string]any{"status": map[string]any{"observedGeneration": obj.GetGeneration(), "replicas": wanted,
		"updatedReplicas": wanted, "readyReplicas": available, "availableReplicas": available}}, "status")
}

// eventually waits until the placement annotation of the Deployment equals placed, its dependents
// have the labels and the annotation for the clusters in labels, and the shards have the given
// numbers of replicas.
func (w *world) eventually(placed, labels string, shards map[string]int64) {
	w.t.Helper()
	planetest.Eventually(w.t, long, placed, func(ctx context.Context) error {
		web, err := w.get(ctx, deployments, "web")
		if err != nil {
			return err
		}
		if is := web.GetAnnotations()[v1alpha1.PlacementAnnotation]; is != placed {
			return fmt.Errorf("web is placed in %q", is)
		}
		for _, d := range dependents {
			obj, err := w.get(ctx, d.GroupVersionResource, d.name)
			if err != nil {
				return err
			}
			var is []string
			for label := range obj.GetLabels() {
				if cluster, ok := strings.CutPrefix(label, "state.workload.kcp.io/"); ok {
					is = append(is, cluster)
				}
			}
			slices.Sort(is)
			if strings.Join(is, ",") != labels || obj.GetAnnotations()[v1alpha1.PlacementAnnotation] != labels {
				return fmt.Errorf("%s %s has the labels of %q and the annotation %q", d.Resource, d.name, is, obj.GetAnnotations()[v1alpha1.PlacementAnnotation])
			}
		}
		for cluster, n := range shards {
			shard, err := w.get(ctx, deployments, "web--"+cluster)
			if n == 0 && apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
			if is, _, _ := unstructured.NestedInt64(shard.Object, "spec", "replicas"); is != n {
				return fmt.Errorf("%s has %d replicas", cluster, is)
			}
		}
		return nil
	})
}

// rests waits until no object is written for the time still, and returns the resourceVersions of
// all objects.
func (w *world) rests() (versions map[string]string) {
	w.t.Helper()
	planetest.Eventually(w.t, long, "nothing is written", func(ctx context.Context) error {
		before, err := w.versions(ctx)
		if err != nil {
			return err
		}
		select {
		case <-time.After(still): // inactivity can only be observed over time
		case <-ctx.Done():
			return ctx.Err()
		}
		versions, err = w.versions(ctx)
		if err != nil || maps.Equal(before, versions) {
			return err
		}
		return fmt.Errorf("before %v, now %v", before, versions)
	})
	return versions
}

func (w *world) versions(ctx context.Context) (map[string]string, error) {
	versions := map[string]string{}
	gvrs := []schema.GroupVersionResource{deployments, policies}
	for _, d := range dependents {
		gvrs = append(gvrs, d.GroupVersionResource)
	}
	for _, gvr := range gvrs {
		list, err := w.api.Dynamic().Resource(gvr).Namespace(w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, obj := range list.Items {
			versions[gvr.Resource+"/"+obj.GetName()] = obj.GetResourceVersion()
		}
	}
	return versions, nil
}

// The placement controller places a Deployment, and the objects that the Deployment refers to, in
// cluster a. When a is drained, the Deployment moves to b: its shard in a loses a replica only
// after a replica in b has become available. A restart of the controller writes no object. After
// the policy has got the mode None, the placement and the labels are gone, and no shard has a
// replica.
func TestPlacement(t *testing.T) {
	plane := planetest.Shared(t, 1)[0]
	api, err := region.APIFor(plane.Config())
	require.NoError(t, err)
	_, err = config.InstallCRDs(t.Context(), api, config.InstallOptions{Groups: []string{v1alpha1.GroupName}})
	require.NoError(t, err)
	w := &world{t: t, api: api, namespace: planetest.Namespace(t, plane)}
	a, b := splitter.Cluster{Name: "a", Ready: metav1.ConditionTrue}, splitter.Cluster{Name: "b", Ready: metav1.ConditionTrue}
	clusters := []*clustertest.Script{clustertest.NewScript(a), clustertest.NewScript(a)}
	run := func() (stop func()) {
		p, err := placement.New(api, clusters[0], placement.Options{Linger: time.Second})
		require.NoError(t, err)
		return w.start(p.Start)
	}
	set := func(list ...splitter.Cluster) {
		for _, s := range clusters {
			s.Set(list...)
		}
	}
	stop := run()
	s, err := splitter.New(api, clusters[1], splitter.Options{Place: placement.Place})
	require.NoError(t, err)
	w.start(s.Start)

	planetest.Apply(t, plane, strings.ReplaceAll(manifests, "\nmetadata: {", "\nmetadata: {namespace: "+w.namespace+", "))
	w.eventually("a", "a", map[string]int64{"a": 4})
	w.works("web--a", 4)

	drained := a
	drained.EvictAfter = time.Unix(1, 0)
	set(drained, b)
	w.eventually("a,b", "a,b", map[string]int64{"a": 4, "b": 4})
	for n := int64(1); n < 4; n++ {
		w.works("web--b", n)
		w.eventually("a,b", "a,b", map[string]int64{"a": 4 - n, "b": 4})
		w.works("web--a", 4-n)
	}
	w.works("web--b", 4)
	w.eventually("b", "b", map[string]int64{"a": 0, "b": 4})

	before := w.rests()
	stop()
	run()
	require.Equal(t, before, w.rests(), "a restart writes nothing")

	planetest.Apply(t, plane, fmt.Sprintf(undivided, w.namespace))
	planetest.Eventually(t, time.Minute, "the objects that are not placed", func(ctx context.Context) error {
		policy, err := w.get(ctx, policies, "one")
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(policy.Object, "status", "conditions")
		text := fmt.Sprint(conditions)
		if !strings.Contains(text, "HorizontalPodAutoscaler web (of Deployment web), PodDisruptionBudget web (of Deployment web): they are in no cluster") {
			return fmt.Errorf("the policy has the conditions %s", text)
		}
		return nil
	})

	w.patch(policies, "one", map[string]any{"spec": map[string]any{"mode": "None"}})
	w.eventually("", "", map[string]int64{"a": 0, "b": 0})
	settings, err := w.get(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "settings")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"theirs": "stays"}, settings.GetLabels())
}
