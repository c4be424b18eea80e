// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/splitter"
	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// scaledBeginning returns the beginning of a Splitter which divides autoscalers with their workloads.
func scaledBeginning(*rand.Rand) beginning {
	return beginning{
		servers: servers(), holds: scaled, scaled: true,
		loops: []perturb.Loop{
			splitting(splitter.Options{Followers: []splitter.Follower{splitter.Autoscalers()}}), workingShards(), workingParts(), readyTargets(),
		},
		strokes: slices.Concat(strokesOfTargets(), strokesOfParents(), strokesOfAutoscalers()),
	}
}

// load is the number of replicas that the autoscaler of each cluster wants.
const load = 3

// workingParts returns the loop that plays the controllers of autoscalers in all clusters. It also undoes what other clients
// write into the status of a part.
func workingParts() perturb.Loop {
	return reports(clusterOf+"autoscalers", upstream, autoscalers, func(obj *unstructured.Unstructured) bool {
		return obj.GetLabels()[splitterv1alpha1.ParentLabel] != ""
	}, func(obj *unstructured.Unstructured) map[string]any {
		least, most := numberIn(obj, "spec", "minReplicas"), numberIn(obj, "spec", "maxReplicas")
		wanted, status, reason := min(max(load, least), most), "False", "DesiredWithinRange"
		if load > most {
			status, reason = "True", "TooManyReplicas"
		}
		limited := conditionIn(obj, "ScalingLimited")
		if numberIn(obj, "status", "desiredReplicas") == wanted && numberIn(obj, "status", "currentReplicas") == wanted && limited != nil && limited["status"] == status {
			return nil
		}
		return map[string]any{"currentReplicas": wanted, "desiredReplicas": wanted, "conditions": []any{
			map[string]any{"type": "ScalingLimited", "status": status, "reason": reason},
		}}
	})
}

func numberIn(obj *unstructured.Unstructured, path ...string) int64 {
	n, _, _ := unstructured.NestedInt64(obj.Object, path...)
	return n
}

func autoscalerRef(w *world) ref {
	return ref{upstream, autoscalers, types.NamespacedName{Namespace: "default", Name: one(w, "x", "x", "y", "z")}}
}

// partRef returns the place of a random autoscaler's part for a random cluster.
func partRef(w *world) (part, autoscaler ref, cluster string) {
	autoscaler, cluster = autoscalerRef(w), one(w, "a", "b", "c")
	part = autoscaler
	part.Name = splitter.ShardName(autoscaler.Name, cluster)
	return part, autoscaler, cluster
}

func contentOfAutoscaler(w *world, target string) *unstructured.Unstructured {
	least := int64(1 + w.IntN(4))
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": map[string]any{
		"minReplicas": least, "maxReplicas": least + int64(w.IntN(9)),
		"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
	}}}
}

// givenAutoscaler makes a user apply an autoscaler of a random workload.
func givenAutoscaler(w *world, at ref) error {
	after, err := w.apply(at, "user", contentOfAutoscaler(w, parentRef(w).Name))
	if err == nil {
		w.keep(at, after)
	}
	return err
}

// strokesOfAutoscalers returns strokes on autoscalers, their parts, and their marks on shards.
func strokesOfAutoscalers() []stroke {
	made := stroke{"autoscaler applied", func(w *world) error { return givenAutoscaler(w, autoscalerRef(w)) }}
	return []stroke{
		made, made, made, made, made,
		{"autoscaler deleted", func(w *world) error { return w.delete(autoscalerRef(w)) }},
		{"autoscaler replaced", func(w *world) error {
			at := autoscalerRef(w)
			if err := w.remove(at); err != nil {
				return err
			}
			return givenAutoscaler(w, at)
		}},
		{"part edited", func(w *world) error {
			at, _, _ := partRef(w)
			_, err := w.merge(at, one(w, "somebody", splitter.Manager), map[string]any{"spec": map[string]any{"minReplicas": 1 + w.IntN(4), "maxReplicas": 4 + w.IntN(9)}})
			return err
		}},
		{"part deleted", func(w *world) error { at, _, _ := partRef(w); return w.delete(at) }},
		{"half-written part", func(w *world) error { return writePart(w, splitter.Manager) }},
		{"foreign object with the marks of a part", func(w *world) error { return writePart(w, "somebody") }},
		{"foreign object in the place of a part", func(w *world) error {
			at, _, cluster := partRef(w)
			obj := contentOfAutoscaler(w, splitter.ShardName(parentRef(w).Name, cluster))
			obj.SetLabels(map[string]string{syncerv1alpha1.ClusterLabel: "elsewhere"}) // else the splitter would divide it
			after, err := w.create(at, "somebody", obj)
			if err == nil {
				w.keep(at, after)
			}
			return err
		}},
		{"status of an autoscaler from elsewhere", func(w *world) error {
			at, parent, _ := partRef(w)
			_, err := w.merge(one(w, at, parent), "cluster", map[string]any{"status": map[string]any{
				"currentReplicas": w.IntN(9), "desiredReplicas": one[any](w, nil, 0, 1, 7, 40), "observedGeneration": one[any](w, nil, 9),
				"conditions": []any{map[string]any{"type": "ScalingLimited", "status": one(w, "True", "False"), "reason": one(w, "TooManyReplicas", "Odd")}},
			}}, "status")
			return err
		}},
		{"least replicas of a shard from elsewhere", func(w *world) error {
			at, _, _ := shardRef(w)
			_, err := w.merge(at, one(w, "somebody", splitter.Manager), inMetadata(map[string]any{"annotations": map[string]any{
				splitterv1alpha1.AutoscalerMinAnnotation: one[any](w, nil, "many", "-1", "2", "9"),
			}}))
			return err
		}},
		{"workload scaled by a person", func(w *world) error {
			at := parentRef(w)
			if _, kept := w.kept[at]; !kept {
				return errNoEffect
			}
			was := w.kept[at]
			_, err := w.merge(at, "user", map[string]any{"spec": map[string]any{"replicas": one(w, 0, 1, 12)}})
			w.kept[at] = was // without this change: the loops may set the number of replicas again
			return err
		}},
	}
}

// writePart writes an object that is, or looks like, the part of a random autoscaler.
func writePart(w *world, manager string) error {
	at, autoscaler, cluster := partRef(w)
	uid := "gone"
	if o, err := w.get(autoscaler); err == nil && w.IntN(4) > 0 {
		uid = string(o.GetUID())
	}
	obj := contentOfAutoscaler(w, splitter.ShardName(parentRef(w).Name, cluster))
	obj.SetLabels(map[string]string{splitterv1alpha1.ParentLabel: uid, syncerv1alpha1.ClusterLabel: one(w, cluster, cluster, "elsewhere")})
	obj.SetAnnotations(map[string]string{
		splitterv1alpha1.ParentAnnotation: one(w, autoscaler.Name, autoscaler.Name, "another"), splitterv1alpha1.ClusterAnnotation: one(w, cluster, cluster, "another"),
	})
	at.Name = one(w, at.Name, at.Name, at.Name+"-copy")
	_, err := w.apply(at, manager, obj)
	return err
}

// scaled returns an error unless the end state of a Splitter with Autoscalers is as documented.
func scaled(ctx context.Context, w *world) error {
	errs := []error{divided(ctx, w)}
	all, err := w.list(ctx, upstream, autoscalers)
	if err != nil {
		return err
	}
	workloads, err := w.list(ctx, upstream, deployments)
	if err != nil {
		return err
	}
	partsOf := map[types.NamespacedName][]*unstructured.Unstructured{}
	for key, obj := range all {
		parent, ok := shardOf(obj)
		if !ok {
			continue
		}
		of := types.NamespacedName{Namespace: key.Namespace, Name: parent}
		if p := all[of]; p != nil && string(p.GetUID()) == obj.GetLabels()[splitterv1alpha1.ParentLabel] {
			partsOf[of] = append(partsOf[of], obj)
		} else if obj.GetDeletionTimestamp() == nil {
			errs = append(errs, fmt.Errorf("part %s has no autoscaler: %s", key, brief(obj)))
		}
	}
	for key, obj := range all {
		if _, ok := obj.GetLabels()[splitterv1alpha1.ParentLabel]; ok {
			continue
		}
		if err := judgeAutoscaler(obj, partsOf[key], workloads); err != nil {
			text := ""
			for _, p := range partsOf[key] {
				text += "\n  part: " + brief(p)
			}
			errs = append(errs, fmt.Errorf("autoscaler %s: %w\n  %s%s", key, err, brief(obj), text))
		}
	}
	return errors.Join(errs...)
}

// judgeAutoscaler requires that the parts of an autoscaler add up to at most its numbers, that each one scales a shard of
// the workload, and that the status has their sums. If no shard or part is missing, the workload has the replicas that the
// parts want.
func judgeAutoscaler(autoscaler *unstructured.Unstructured, parts []*unstructured.Unstructured, workloads map[types.NamespacedName]*unstructured.Unstructured) error {
	if slices.ContainsFunc(parts, func(p *unstructured.Unstructured) bool { return p.GetDeletionTimestamp() != nil }) || autoscaler.GetDeletionTimestamp() != nil {
		return nil // a finalizer of another client delays its deletion
	}
	if finalized := slices.Contains(autoscaler.GetFinalizers(), splitterv1alpha1.ShardsFinalizer); len(parts) > 0 && !finalized {
		return errors.New("it has parts and no finalizer")
	}
	if len(parts) == 0 {
		return nil
	}
	target, _, _ := unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", "name")
	workload := workloads[types.NamespacedName{Namespace: autoscaler.GetNamespace(), Name: target}]
	if workload == nil {
		return errors.New("it has parts and no workload")
	}
	var least, most, wanted int64
	for _, p := range parts {
		cluster := p.GetAnnotations()[splitterv1alpha1.ClusterAnnotation]
		if p.GetLabels()[syncerv1alpha1.ClusterLabel] != cluster {
			return fmt.Errorf("its part for %s is labelled for %q", cluster, p.GetLabels()[syncerv1alpha1.ClusterLabel])
		}
		if name, _, _ := unstructured.NestedString(p.Object, "spec", "scaleTargetRef", "name"); name != splitter.ShardName(target, cluster) {
			return fmt.Errorf("its part for %s scales %s", cluster, name)
		}
		min, max := numberIn(p, "spec", "minReplicas"), numberIn(p, "spec", "maxReplicas")
		if min < 1 || max < min {
			return fmt.Errorf("its part for %s has %d to %d replicas", cluster, min, max)
		}
		least, most, wanted = least+min, most+max, wanted+numberIn(p, "status", "desiredReplicas")
	}
	if allowed := numberIn(autoscaler, "spec", "minReplicas"); least > allowed {
		return fmt.Errorf("the minReplicas of its parts add up to %d of %d", least, allowed)
	}
	if allowed := numberIn(autoscaler, "spec", "maxReplicas"); most > allowed {
		return fmt.Errorf("the maxReplicas of its parts add up to %d of %d", most, allowed)
	}
	if n := numberIn(autoscaler, "status", "desiredReplicas"); n != wanted {
		return fmt.Errorf("its status wants %d replicas, and its parts want %d", n, wanted)
	}
	if n := numberIn(workload, "spec", "replicas"); n != wanted {
		return fmt.Errorf("its workload has %d replicas, and its parts want %d", n, wanted)
	}
	return nil
}
