// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/clusterdaemonset"
	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

func daemonBeginning(*rand.Rand) beginning {
	return beginning{
		servers: servers(), holds: carriedOut,
		loops:   []perturb.Loop{daemonizing(clusterdaemonset.Options{}), daemonsRun(), readyTargets()},
		strokes: slices.Concat(strokesOfTargets(), strokesOfDaemons()),
	}
}

func daemonRef(w *world) ref {
	return ref{upstream, daemons, types.NamespacedName{Namespace: "default", Name: one(w, "x", "y")}}
}

// copyRef returns the place of the Deployment of a random ClusterDaemonSet for a random cluster.
func copyRef(w *world) (copied, set ref, cluster string) {
	set, cluster = daemonRef(w), one(w, "a", "b", "c")
	return ref{upstream, deployments, types.NamespacedName{Namespace: "default", Name: splitter.ShardName(set.Name, cluster)}}, set, cluster
}

// givenDaemon makes a user apply a ClusterDaemonSet. The operator of its selector of clusters may be wrong.
func givenDaemon(w *world, at ref, variant int) error {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": splitterv1alpha1.GroupVersion.String(), "kind": "ClusterDaemonSet", "spec": map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}, "replicasPerCluster": int64(w.IntN(3)),
		"template": content(deployments, at.Name, variant).Object["spec"].(map[string]any)["template"],
	}}}
	app, _, _ := unstructured.NestedString(obj.Object, "spec", "template", "metadata", "labels", "app")
	if err := unstructured.SetNestedField(obj.Object, app, "spec", "selector", "matchLabels", "app"); err != nil {
		return err
	}
	switch w.IntN(5) {
	case 0, 1:
		obj.Object["spec"].(map[string]any)["clusterSelector"] = map[string]any{"matchLabels": map[string]any{"zone": one(w, "one", "two")}}
	case 2:
		obj.Object["spec"].(map[string]any)["clusterSelector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": "zone", "operator": one(w, "Odd", "Exists")}}}
	}
	if w.IntN(8) == 0 {
		obj.SetLabels(map[string]string{one(w, syncerv1alpha1.ClusterLabel, syncerv1alpha1.StateLabelPrefix+"a"): "a"})
	}
	after, err := w.apply(at, "user", obj)
	if err == nil {
		w.keep(at, after)
	}
	return err
}

// strokesOfDaemons returns strokes on ClusterDaemonSets and their Deployments.
func strokesOfDaemons() []stroke {
	made := stroke{"applied", func(w *world) error { return givenDaemon(w, daemonRef(w), w.IntN(10)) }}
	return []stroke{
		made, made, made, made,
		{"spec A, B, A", func(w *world) error {
			at := daemonRef(w)
			for _, variant := range []int{4, 9, 4} {
				if err := givenDaemon(w, at, variant); err != nil {
					return err
				}
				time.Sleep(time.Duration(w.IntN(3)) * time.Second)
			}
			return nil
		}},
		{"deleted", func(w *world) error { return w.delete(daemonRef(w)) }},
		{"deleted by force", func(w *world) error { return w.remove(daemonRef(w)) }},
		{"replaced", func(w *world) error {
			at := daemonRef(w)
			if err := w.remove(at); err != nil {
				return err
			}
			return givenDaemon(w, at, w.IntN(10))
		}},
		{"finalizers lost or without Deployments", func(w *world) error {
			_, err := w.merge(daemonRef(w), one(w, clusterdaemonset.Manager, "somebody"), inMetadata(map[string]any{"finalizers": one(w, nil, []any{splitterv1alpha1.ShardsFinalizer})}))
			return err
		}},
		{"held by a finalizer of others", func(w *world) error {
			at, _, _ := copyRef(w)
			_, err := w.merge(at, "somebody", inMetadata(map[string]any{"finalizers": []any{"example.com/hold"}}))
			return err
		}},
		{"foreign object in the place of a Deployment", func(w *world) error {
			at, _, _ := copyRef(w)
			after, err := w.create(at, "somebody", content(at.gvr, at.Name, 7))
			if err == nil {
				w.keep(at, after)
			}
			return err
		}},
		{"half-written Deployment", func(w *world) error { return writeCopy(w, clusterdaemonset.Manager) }},
		{"foreign object with our marks", func(w *world) error { return writeCopy(w, "somebody") }},
		{"marks lost", func(w *world) error {
			at, _, _ := copyRef(w)
			_, err := w.merge(at, "somebody", inMetadata(map[string]any{
				"annotations": map[string]any{splitterv1alpha1.ParentAnnotation: one[any](w, nil, "another", "")},
				"labels":      map[string]any{syncerv1alpha1.ClusterLabel: one[any](w, nil, "another", "b")},
			}))
			return err
		}},
		{"Deployment edited", func(w *world) error {
			at, _, _ := copyRef(w)
			_, err := w.merge(at, one(w, "somebody", clusterdaemonset.Manager), map[string]any{"spec": map[string]any{"replicas": w.IntN(12), "paused": one[any](w, nil, true)}})
			return err
		}},
		{"Deployment deleted", func(w *world) error { at, _, _ := copyRef(w); return w.delete(at) }},
		{"status from elsewhere", func(w *world) error {
			_, err := w.merge(daemonRef(w), "somebody", map[string]any{"status": map[string]any{
				"observedGeneration": int64(9), "desiredClusters": int64(7), "readyClusters": int64(5), "conditions": []any{map[string]any{
					"type": "Ready", "status": one(w, "True", "False"), "reason": "Odd", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
				}},
			}}, "status")
			return err
		}},
	}
}

// writeCopy writes an object that is, or looks like, the Deployment of a random ClusterDaemonSet.
func writeCopy(w *world, manager string) error {
	at, set, cluster := copyRef(w)
	return writeMarked(w, manager, splitterv1alpha1.ClusterDaemonSetLabel, at, set, cluster)
}

// carriedOut returns an error unless the end state of a clusterdaemonset Controller is as documented.
func carriedOut(ctx context.Context, w *world) error {
	sets, err := w.list(ctx, upstream, daemons)
	if err != nil {
		return err
	}
	copies, err := w.list(ctx, upstream, deployments)
	if err != nil {
		return err
	}
	targets, err := w.list(ctx, upstream, syncTargets)
	if err != nil {
		return err
	}
	errs := []error{w.untouched()}
	for key, obj := range copies {
		marks := obj.GetAnnotations()
		set := sets[types.NamespacedName{Namespace: key.Namespace, Name: marks[splitterv1alpha1.ParentAnnotation]}]
		mine := obj.GetLabels()[splitterv1alpha1.ClusterDaemonSetLabel]
		if mine != "" && obj.GetName() == splitter.ShardName(marks[splitterv1alpha1.ParentAnnotation], marks[splitterv1alpha1.ClusterAnnotation]) &&
			obj.GetDeletionTimestamp() == nil && (set == nil || string(set.GetUID()) != mine) {
			errs = append(errs, fmt.Errorf("%s has no ClusterDaemonSet: %s", key, brief(obj)))
		}
	}
	for key, set := range sets {
		if err := judgeDaemon(set, copies, targets); err != nil {
			text := ""
			for _, obj := range copies {
				text += "\n  Deployment: " + brief(obj)
			}
			errs = append(errs, fmt.Errorf("%s: %w\n  %s%s", key, err, brief(set), text))
		}
	}
	return errors.Join(errs...)
}

func judgeDaemon(set *unstructured.Unstructured, copies, targets map[types.NamespacedName]*unstructured.Unstructured) error {
	assigned := false
	for label := range set.GetLabels() {
		assigned = assigned || label == syncerv1alpha1.ClusterLabel || strings.HasPrefix(label, syncerv1alpha1.StateLabelPrefix)
	}
	ends := assigned || set.GetDeletionTimestamp() != nil
	zone, _, _ := unstructured.NestedString(set.Object, "spec", "clusterSelector", "matchLabels", "zone")
	expressions, _, _ := unstructured.NestedSlice(set.Object, "spec", "clusterSelector", "matchExpressions")
	invalid := len(expressions) > 0 && expressions[0].(map[string]any)["operator"] == "Odd"
	chosen, taken, held := int64(0), false, false
	for _, cluster := range []string{"a", "b", "c"} {
		target := targets[types.NamespacedName{Name: cluster}]
		obj := copies[types.NamespacedName{Namespace: set.GetNamespace(), Name: splitter.ShardName(set.GetName(), cluster)}]
		has := obj != nil && obj.GetLabels()[splitterv1alpha1.ClusterDaemonSetLabel] == string(set.GetUID())
		if obj != nil && obj.GetDeletionTimestamp() != nil {
			held = true
			continue
		}
		want := target != nil && !ends && target.GetDeletionTimestamp() == nil && (zone == "" || target.GetLabels()["zone"] == zone)
		if target != nil {
			evict, _, _ := unstructured.NestedString(target.Object, "spec", "evictAfter")
			cordoned, _, _ := unstructured.NestedBool(target.Object, "spec", "unschedulable")
			want = want && !strings.HasPrefix(evict, "2000") && (!cordoned && !invalid || has)
		}
		switch {
		case want && obj != nil && !has && !named(obj, set.GetName(), cluster):
			taken = true
		case has && target == nil && !named(obj, set.GetName(), cluster):
			// Its marks do not name the cluster, and no SyncTarget does: it stays until the ClusterDaemonSet ends.
		case want != has:
			return fmt.Errorf("in %s: wanted %t, has %t", cluster, want, has)
		case has && !invalid:
			if err := judgeCopy(set, obj, cluster); err != nil {
				return fmt.Errorf("in %s: %w", cluster, err)
			}
		}
		if want {
			chosen++
		}
	}
	finalized := slices.Contains(set.GetFinalizers(), splitterv1alpha1.ShardsFinalizer)
	switch {
	case held:
		return nil
	case ends && finalized:
		return errors.New("it is not carried out, and has the finalizer")
	case ends:
		return nil
	case !finalized:
		return errors.New("it has no finalizer")
	}
	ready := conditionIn(set, "Ready")
	desired, _, _ := unstructured.NestedInt64(set.Object, "status", "desiredClusters")
	if desired != chosen || ready["observedGeneration"] != set.GetGeneration() || invalid != (ready["reason"] == "Invalid") || (taken && !invalid) != (ready["reason"] == "NameTaken") {
		return fmt.Errorf("%d clusters are chosen, and the status is %v", chosen, set.Object["status"])
	}
	return nil
}

// named reports whether the marks of a Deployment name a ClusterDaemonSet and a cluster.
func named(obj *unstructured.Unstructured, set, cluster string) bool {
	marks := obj.GetAnnotations()
	return obj.GetLabels()[splitterv1alpha1.ClusterDaemonSetLabel] != "" && marks[splitterv1alpha1.ParentAnnotation] == set && marks[splitterv1alpha1.ClusterAnnotation] == cluster
}

func judgeCopy(set, obj *unstructured.Unstructured, cluster string) error {
	wanted, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicasPerCluster")
	replicas, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	image := func(o *unstructured.Unstructured) any {
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		return containers[0].(map[string]any)["image"]
	}
	if replicas != wanted || image(obj) != image(set) || obj.GetLabels()[syncerv1alpha1.ClusterLabel] != cluster || obj.GetAnnotations()[splitterv1alpha1.ParentAnnotation] != set.GetName() {
		return fmt.Errorf("it is not as its ClusterDaemonSet: %s", brief(obj))
	}
	return nil
}
