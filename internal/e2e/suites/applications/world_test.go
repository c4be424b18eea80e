// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package applications_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

const (
	long         = 5 * time.Minute
	target       = "cluster-1"
	clusterLabel = v1alpha1.ClusterLabel
)

// powers are the permits that the corpus needs.
var powers = []syncer.Power{
	syncer.PermitAdmissionPolicies, syncer.PermitAdmissionWebhooks, syncer.PermitCSIDrivers, syncer.PermitCustomResourceDefinitions,
	syncer.PermitEndpoints, syncer.PermitFlowControl, syncer.PermitIngressClasses, syncer.PermitPersistentVolumes,
	syncer.PermitPriorityClasses, syncer.PermitRBAC, syncer.PermitRuntimeClasses, syncer.PermitStorageClasses,
}

// world is an upstream without controllers, a cluster with three nodes, and a syncer between them.
type world struct {
	upstream, cluster *plane.Plane
	up, down          region.API
	types             map[schema.GroupVersionKind]resource
	*syncer.Syncer
}

type resource struct {
	schema.GroupVersionResource
	namespaced bool
}

// item is an object of an application.
type item struct {
	application string
	written     *unstructured.Unstructured
}

func (i item) String() string { return i.written.GetKind() + " " + i.written.GetName() }

// newWorld starts the planes and the syncer. upsync selects types whose objects may go up; it may be nil.
func newWorld(t *testing.T, upsync syncer.TypeFilter) *world {
	t.Helper()
	// The claims of the upstream get no finalizer: without controllers nothing would remove it.
	planes := planetest.NewAll(t,
		plane.Options{Name: "upstream", APIServerFlags: []string{"--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection"}},
		plane.Options{Name: "cluster", Pods: true, Nodes: 3})
	w := &world{upstream: planes[0], cluster: planes[1], types: map[schema.GroupVersionKind]resource{}}
	var err error
	w.up, err = region.APIFor(w.upstream.Config())
	require.NoError(t, err)
	w.down, err = region.APIFor(w.cluster.Config())
	require.NoError(t, err)
	for i, zone := range []string{"a", "b", "c"} {
		planetest.Apply(t, w.cluster, fmt.Sprintf("{apiVersion: v1, kind: Node, metadata: {name: node-%d, labels: {kubernetes.io/os: linux, topology.kubernetes.io/zone: %s}}}", i+1, zone))
	}
	w.run(t, w.provision)
	w.Syncer, err = syncer.New(w.up, w.down, syncer.Options{
		Target: target, Permit: powers, Discovery: 2 * time.Second, Upsync: upsync,
		DeleteCap: syncer.DeleteCap{Objects: -1}, // the test deletes all objects
	})
	require.NoError(t, err)
	w.run(t, w.Start)
	w.discover(t)
	return w
}

// run runs a loop until the end of the test.
func (w *world) run(t *testing.T, loop func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	var err error
	group.Go(func() { err = loop(ctx) })
	t.Cleanup(func() {
		cancel()
		group.Wait()
		require.NoError(t, err)
	})
}

// provision stands in for a storage driver: it creates a volume for each claim that names none.
func (w *world) provision(ctx context.Context) error {
	claims := w.down.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"))
	watch, err := claims.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		claim := &corev1.PersistentVolumeClaim{}
		obj, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type != "ADDED" || runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, claim) != nil || claim.Name == "archive" {
			continue // the application that has the claim "archive" has its volume, too
		}
		class := claim.Annotations[corev1.BetaStorageClassAnnotation]
		if claim.Spec.StorageClassName != nil && class == "" {
			class = *claim.Spec.StorageClassName
		}
		volume := &corev1.PersistentVolume{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: claim.Namespace + "." + claim.Name}}
		volume.Spec = corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, StorageClassName: class, VolumeMode: claim.Spec.VolumeMode,
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp/none"}},
		}
		manifest, err := json.Marshal(volume)
		if err != nil {
			return err
		}
		if err := w.cluster.Apply(ctx, manifest); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// create creates an application upstream, labelled for the cluster, and returns its objects.
func (w *world) create(t *testing.T, a application) []item {
	t.Helper()
	var manifests bytes.Buffer
	add := func(obj *unstructured.Unstructured) {
		text, err := json.Marshal(obj)
		require.NoError(t, err)
		manifests.Write(append(text, "\n---\n"...))
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName(a.name)
	add(namespace)
	var items []item
	clusterWide := w.clusterWide(a)
	for _, written := range a.objects {
		obj := written.DeepCopy()
		if !clusterWide[obj.GroupVersionKind().GroupKind()] {
			obj.SetNamespace(a.name)
		}
		labels := obj.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[clusterLabel] = target
		obj.SetLabels(labels)
		add(obj)
		items = append(items, item{a.name, written})
	}
	// A server serves a type a moment after it has accepted the definition. Apply may be repeated.
	planetest.Eventually(t, long, "creating "+a.name, func(ctx context.Context) error { return w.upstream.Apply(ctx, manifests.Bytes()) })
	return items
}

// clusterWide returns the cluster-wide kinds: those of the upstream, and those that an application defines.
func (w *world) clusterWide(a application) map[schema.GroupKind]bool {
	all := map[schema.GroupKind]bool{}
	for gvk, r := range w.types {
		all[gvk.GroupKind()] = !r.namespaced
	}
	for _, obj := range a.objects {
		if obj.GetKind() == "CustomResourceDefinition" {
			field := func(path ...string) string {
				text, _, _ := unstructured.NestedString(obj.Object, append([]string{"spec"}, path...)...)
				return text
			}
			all[schema.GroupKind{Group: field("group"), Kind: field("names", "kind")}] = field("scope") == "Cluster"
		}
	}
	return all
}

// discover reads the types of the upstream.
func (w *world) discover(t *testing.T) {
	t.Helper()
	_, lists, err := w.up.Discovery().ServerGroupsAndResources()
	require.NoError(t, err)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				w.types[gv.WithKind(r.Kind)] = resource{gv.WithResource(r.Name), r.Namespaced}
			}
		}
	}
}

// of returns the client for an item on one side.
func (w *world) of(api region.API, i item) dynamic.ResourceInterface {
	r := w.types[i.written.GroupVersionKind()]
	if !r.namespaced {
		return api.Dynamic().Resource(r.GroupVersionResource)
	}
	return api.Dynamic().Resource(r.GroupVersionResource).Namespace(i.application)
}

// problem returns the problem that the syncer reports for an item; "" if it reports none.
func (w *world) problem(i item) string {
	r := w.types[i.written.GroupVersionKind()]
	for _, s := range w.Status().Types {
		if s.Resource.GroupResource() != r.GroupResource() {
			continue
		}
		n := slices.IndexFunc(s.Problems, func(p syncer.Problem) bool {
			return p.Object.Name == i.written.GetName() && (!r.namespaced || p.Object.Namespace == i.application)
		})
		if n >= 0 {
			return string(s.Problems[n].Reason) + ": " + s.Problems[n].Message
		}
	}
	return ""
}
