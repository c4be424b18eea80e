// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/atoll-dev/atoll/internal/docpage"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// dividedKinds are the kinds of workloads that the test of the applications divides.
var dividedKinds = []splitter.Kind{splitter.Deployments(), splitter.StatefulSets(), splitter.DaemonSets(), splitter.Jobs(), splitter.CronJobs()}

// ofTheDivision lists the fields in which a shard may differ from its parent, by resource. Each comment gives the reason.
var ofTheDivision = map[string][]string{
	"deployments":  {"spec.replicas", "spec.strategy.rollingUpdate"}, // the share, and the part of the budget that all clusters share
	"statefulsets": {"spec.replicas"},
	"jobs":         {"spec.parallelism", "spec.completions"},
}

// follows lists the types that Dependents places with a workload.
var follows = []string{"configmaps", "secrets", "serviceaccounts", "persistentvolumeclaims", "services", "ingresses", "networkpolicies"}

// outcomes counts objects by type and outcome.
type outcomes struct {
	applications, objects, workloads, shards, placed, divided int
	missing                                                   map[string]map[string]int // by reason and type
	differ                                                    map[string]int            // shards by "type field"
}

// Each of the forty applications is placed in two clusters by one policy with dependents. Each shard has all fields of its
// parent, except those that the division sets. Every object that is in no cluster has a reason.
func TestApplicationsAreDivided(t *testing.T) {
	paths, err := filepath.Glob("../../internal/e2e/suites/applications/testdata/*.yaml")
	require.NoError(t, err)
	require.Len(t, paths, 40)
	sum := outcomes{missing: map[string]map[string]int{}, differ: map[string]int{}}
	for _, path := range paths {
		sum.applications++
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { divideApplication(t, path, &sum) })
		})
	}
	t.Log(sum.text())
	if !t.Failed() {
		docpage.Section(t, "applications.md", "divided", sum.text())
	}
}

// objectsIn returns the objects of a file, types first.
func objectsIn(t *testing.T, path string) (all []*unstructured.Unstructured) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		all = append(all, obj)
	}
	isType := func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "CustomResourceDefinition" }
	return slices.Concat(filter(all, isType), filter(all, func(obj *unstructured.Unstructured) bool { return !isType(obj) }))
}

func filter[T any](all []T, keep func(T) bool) (some []T) {
	for _, v := range all {
		if keep(v) {
			some = append(some, v)
		}
	}
	return some
}

func divideApplication(t *testing.T, path string, sum *outcomes) {
	t.Helper()
	w := newWorld(t)
	clusters := []splitter.Cluster{cluster("a"), cluster("b")}
	var workloads []schema.GroupVersionResource
	for _, kind := range dividedKinds {
		workloads = append(workloads, kind.Resource())
	}
	stop := w.startPlacement(placement.Options{Workloads: workloads}, clusters...)
	defer stop()
	split, err := splitter.New(w.api, w.script(clusters...), splitter.Options{
		Kinds: dividedKinds, Place: placement.Place, Followers: []splitter.Follower{splitter.DisruptionBudgets(), splitter.Autoscalers()},
	})
	require.NoError(t, err)
	defer w.start(split.Start)()
	w.policy("all", "{dependents: true}")

	objects := objectsIn(t, path)
	types := map[schema.GroupVersionKind]metav1.APIResource{}
	for _, obj := range objects {
		if len(types) == 0 || obj.GetKind() != "CustomResourceDefinition" && types[obj.GroupVersionKind()].Name == "" {
			types = w.types()
		}
		r, ok := types[obj.GroupVersionKind()]
		if !ok {
			continue
		}
		if r.Namespaced {
			obj.SetNamespace("default")
		}
		_, err := w.api.Dynamic().Resource(resourceOf(obj, r)).Namespace(obj.GetNamespace()).Create(t.Context(), obj, metav1.CreateOptions{FieldManager: "user"})
		if !apierrors.IsAlreadyExists(err) { // the ServiceAccount default, for instance
			require.NoError(t, err, "%s %s", obj.GetKind(), obj.GetName())
		}
	}
	time.Sleep(2 * time.Minute) // virtual: after it, all loops are at rest
	synctest.Wait()
	for _, obj := range objects {
		sum.objects++
		r, ok := types[obj.GroupVersionKind()]
		if !ok {
			sum.miss("the API server in memory does not serve the type", obj.GetKind())
			continue
		}
		gvr := resourceOf(obj, r)
		now, err := w.api.Dynamic().Resource(gvr).Namespace(obj.GetNamespace()).Get(t.Context(), obj.GetName(), metav1.GetOptions{})
		require.NoError(t, err)
		switch parts := w.parts(gvr, now); {
		case slices.Contains(workloads, gvr):
			sum.workloads++
			require.Equal(t, "a,b", now.GetAnnotations()[v1alpha1.PlacementAnnotation], "%s %s", obj.GetKind(), obj.GetName())
			for _, shard := range parts {
				sum.shards++
				sum.compare(t, r.Name, now, shard)
			}
			require.True(t, len(parts) > 0 || none(now), "%s %s has no shard", obj.GetKind(), obj.GetName())
		case len(parts) > 0:
			sum.divided++
		case now.GetAnnotations()[v1alpha1.PlacementAnnotation] != "":
			sum.placed++
			require.Equal(t, syncerv1alpha1.StateSync, now.GetLabels()[syncerv1alpha1.StateLabelPrefix+"a"])
		default:
			sum.miss(reasonOf(r, gvr))
		}
	}
}

func resourceOf(obj *unstructured.Unstructured, r metav1.APIResource) schema.GroupVersionResource {
	return obj.GroupVersionKind().GroupVersion().WithResource(r.Name)
}

// types returns the types that the server serves.
func (w *world) types() map[schema.GroupVersionKind]metav1.APIResource {
	w.t.Helper()
	_, lists, err := w.api.Discovery().ServerGroupsAndResources()
	require.NoError(w.t, err)
	all := map[schema.GroupVersionKind]metav1.APIResource{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(w.t, err)
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				all[version.WithKind(r.Kind)] = r
			}
		}
	}
	return all
}

// parts returns the shards of a workload, or the parts of an object that is divided with it.
func (w *world) parts(gvr schema.GroupVersionResource, parent *unstructured.Unstructured) []unstructured.Unstructured {
	w.t.Helper()
	list, err := w.api.Dynamic().Resource(gvr).Namespace(parent.GetNamespace()).List(w.t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.ParentLabel + "=" + string(parent.GetUID())})
	require.NoError(w.t, err)
	return list.Items
}

// compare requires that a shard has the labels, annotations and fields of its parent, except those of other tools and those
// of the division, which it counts.
func (o *outcomes) compare(t *testing.T, resource string, parent *unstructured.Unstructured, shard unstructured.Unstructured) {
	t.Helper()
	for field := range differences("spec", parent.Object["spec"], shard.Object["spec"]) {
		known := slices.IndexFunc(ofTheDivision[resource], func(path string) bool { return field == path || strings.HasPrefix(field, path+".") })
		require.GreaterOrEqual(t, known, 0, "%s %s differs from %s in %s", parent.GetKind(), shard.GetName(), parent.GetName(), field)
		o.differ["`"+resource+"` `"+ofTheDivision[resource][known]+"`"]++
	}
	for key, value := range parent.GetLabels() {
		if now, ok := shard.GetLabels()[key]; !ok || now != value {
			o.differ["`"+resource+"` label `"+key+"`"]++
			require.Contains(t, []string{"app.kubernetes.io/instance"}, key, "%s %s has lost the label", parent.GetKind(), shard.GetName())
		}
	}
	for key, value := range parent.GetAnnotations() {
		if now, ok := shard.GetAnnotations()[key]; (!ok || now != value) && !strings.HasPrefix(key, "splitter.atoll.dev/") {
			o.differ["`"+resource+"` annotation `"+key+"`"]++
			require.Regexp(t, `^(meta\.helm\.sh|config\.k8s\.io|kustomize\.toolkit\.fluxcd\.io)/`, key, "%s %s has lost the annotation", parent.GetKind(), shard.GetName())
		}
	}
}

// differences returns the paths of the fields in which two values differ. Lists are compared as a whole.
func differences(path string, a, b any) map[string]bool {
	x, isMap := a.(map[string]any)
	y, both := b.(map[string]any)
	switch {
	case reflect.DeepEqual(a, b):
		return nil
	case !isMap || !both:
		return map[string]bool{path: true}
	}
	all := map[string]bool{}
	for key := range maps.Keys(x) {
		maps.Copy(all, differences(path+"."+key, x[key], y[key]))
	}
	for key := range maps.Keys(y) {
		if _, ok := x[key]; !ok {
			all[path+"."+key] = true
		}
	}
	return all
}

// none reports whether a workload needs no shard: it has no replicas, or is a Job that is suspended before its first pod.
func none(obj *unstructured.Unstructured) bool {
	if suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); suspended && obj.GetKind() == "Job" {
		return true
	}
	for _, field := range []string{"replicas", "parallelism"} {
		if n, found, _ := unstructured.NestedInt64(obj.Object, "spec", field); found && n == 0 {
			return true
		}
	}
	return false
}

// reasonOf returns the reason why an object is in no cluster, and the name under which it is counted.
func reasonOf(r metav1.APIResource, gvr schema.GroupVersionResource) (reason, name string) {
	name = gvr.GroupResource().String()
	switch {
	case !r.Namespaced:
		reason = "it is cluster-wide, and policies place namespaced objects only"
	case slices.Contains(follows, r.Name):
		reason = "no pod template of a divided workload refers to it, and it selects none"
	case gvr.Group == "autoscaling" || gvr.Group == "policy":
		reason = "it belongs to no divided workload"
	case strings.Contains(gvr.Group, ".example."):
		reason, name = "its type is a custom one: Options.Others or a WorkloadType must name it", "custom types"
	default:
		reason = "its type does not follow workloads: Options.Others must name it, and a policy must select it"
	}
	return reason, name
}

// miss counts an object that is in no cluster.
func (o *outcomes) miss(reason, name string) {
	if o.missing[reason] == nil {
		o.missing[reason] = map[string]int{}
	}
	o.missing[reason][name]++
}

func (o *outcomes) text() string {
	var text strings.Builder
	missing := 0
	for _, types := range o.missing {
		for _, n := range types {
			missing += n
		}
	}
	fmt.Fprintf(&text, "%d applications with %d objects, over two clusters: %d workloads have %d shards, %d autoscalers and budgets are divided with them, %d other objects are placed with them. %d objects are in no cluster.\n\n",
		o.applications, o.objects, o.workloads, o.shards, o.divided, o.placed, missing)
	text.WriteString("| in no cluster, because | objects |\n|---|---|\n")
	for _, reason := range slices.Sorted(maps.Keys(o.missing)) {
		var types []string
		for _, name := range slices.Sorted(maps.Keys(o.missing[reason])) {
			types = append(types, fmt.Sprintf("%s %d", name, o.missing[reason][name]))
		}
		fmt.Fprintf(&text, "| %s | %s |\n", reason, strings.Join(types, ", "))
	}
	text.WriteString("\n| shards that differ from their parent in | shards |\n|---|---|\n")
	for _, field := range slices.Sorted(maps.Keys(o.differ)) {
		fmt.Fprintf(&text, "| %s | %d |\n", field, o.differ[field])
	}
	return text.String()
}
