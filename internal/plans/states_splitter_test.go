// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/splitter"
	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

func splitterBeginning(*rand.Rand) beginning {
	return beginning{
		servers: servers(), holds: divided,
		loops:   []perturb.Loop{splitting(splitter.Options{}), workingShards(), readyTargets()},
		strokes: slices.Concat(strokesOfTargets(), strokesOfParents()),
	}
}

// workingShards returns a loop that does the same as the loop of the function shards. It also
// undoes what other clients write into a shard's status.
func workingShards() perturb.Loop {
	isShard := func(obj *unstructured.Unstructured) bool { return obj.GetLabels()[splitterv1alpha1.ParentLabel] != "" }
	return reports(clusterOf+"shards", upstream, deployments, isShard, func(obj *unstructured.Unstructured) map[string]any {
		wanted, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
		for _, counter := range []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"} {
			if n, _, _ := unstructured.NestedInt64(obj.Object, "status", counter); n != wanted {
				unstructured.RemoveNestedField(obj.Object, "status", "observedGeneration")
			}
		}
		return availableStatus(obj)
	})
}

func targetRef(w *world) ref {
	return ref{upstream, syncTargets, types.NamespacedName{Name: one(w, "a", "b", "c")}}
}

func parentRef(w *world) ref {
	return ref{upstream, deployments, types.NamespacedName{Namespace: "default", Name: one(w, "x", "y")}}
}

// shardRef returns the place of a random parent's shard for a random cluster.
func shardRef(w *world) (shard, parent ref, cluster string) {
	parent, cluster = parentRef(w), one(w, "a", "b", "c")
	shard = parent
	shard.Name = splitter.ShardName(parent.Name, cluster)
	return shard, parent, cluster
}

func inMetadata(fields map[string]any) map[string]any { return map[string]any{"metadata": fields} }

// strokesOfTargets returns strokes on clusters.
func strokesOfTargets() []stroke {
	joins := stroke{"cluster joins", func(w *world) error {
		at := targetRef(w)
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "spec": map[string]any{}}}
		obj.SetLabels(map[string]string{"zone": one(w, "one", "two"), splitterv1alpha1.WeightLabel: one(w, "1", "2", "3", "1", "0")})
		_, err := w.apply(at, "user", obj)
		return err
	}}
	return []stroke{
		joins, joins, joins, joins,
		{"malformed weight", func(w *world) error {
			_, err := w.merge(targetRef(w), "user", inMetadata(map[string]any{"labels": map[string]any{splitterv1alpha1.WeightLabel: one[any](w, "many", "-1", "99999999999", "", nil)}}))
			return err
		}},
		{"cluster bounded", func(w *world) error {
			_, err := w.merge(targetRef(w), "user", map[string]any{"spec": map[string]any{
				"unschedulable": one[any](w, nil, true), "evictAfter": one[any](w, nil, "2000-01-01T00:00:00Z", "2200-01-01T00:00:00Z"), "pods": one[any](w, nil, 0, 2, 5),
			}})
			return err
		}},
		{"status of a cluster from elsewhere", func(w *world) error {
			status := map[string]any{
				"conditions": []any{map[string]any{
					"type": "Ready", "status": one(w, "True", "True", "False", "Unknown"), "reason": "Syncing", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
				}},
				"capacity": map[string]any{"pods": one[any](w, "4", "110", "-3")}, "lastSyncerHeartbeatTime": one[any](w, nil, nil, "1999-01-01T00:00:00Z"),
			}
			_, err := w.merge(targetRef(w), "somebody", map[string]any{"status": status}, "status")
			return err
		}},
		{"cluster leaves", func(w *world) error { return w.remove(targetRef(w)) }},
		{"cluster held by a finalizer of others", func(w *world) error {
			at := targetRef(w)
			if _, err := w.merge(at, "somebody", inMetadata(map[string]any{"finalizers": []any{"example.com/hold"}})); err != nil {
				return err
			}
			return w.delete(at)
		}},
	}
}

// givenParent makes a user apply a workload.
func givenParent(w *world, at ref, variant int) error {
	obj := content(at.gvr, at.Name, variant)
	rolling := map[string]any{"maxUnavailable": one[any](w, int64(0), int64(1), int64(3), "25%", "100%"), "maxSurge": one[any](w, int64(1), "25%")}
	if err := unstructured.SetNestedMap(obj.Object, rolling, "spec", "strategy", "rollingUpdate"); err != nil {
		return err
	}
	labels := map[string]string{"team": one(w, "one", "two")}
	if w.IntN(8) == 0 {
		labels[one(w, syncerv1alpha1.ClusterLabel, syncerv1alpha1.StateLabelPrefix+"a")] = "a"
	}
	obj.SetLabels(labels)
	after, err := w.apply(at, "user", obj)
	if err == nil {
		w.keep(at, after, "team")
	}
	return err
}

// strokesOfParents returns strokes on divided workloads and their shards.
func strokesOfParents() []stroke {
	made := stroke{"applied", func(w *world) error { return givenParent(w, parentRef(w), w.IntN(10)) }}
	return []stroke{
		made, made, made, made,
		{"spec A, B, A", func(w *world) error {
			at := parentRef(w)
			for _, variant := range []int{4, 9, 4} {
				if err := givenParent(w, at, variant); err != nil {
					return err
				}
				time.Sleep(time.Duration(w.IntN(3)) * time.Second)
			}
			return nil
		}},
		{"deleted", func(w *world) error { return w.delete(parentRef(w)) }},
		{"deleted by force", func(w *world) error { return w.remove(parentRef(w)) }},
		{"replaced", func(w *world) error {
			at := parentRef(w)
			if err := w.remove(at); err != nil {
				return err
			}
			return givenParent(w, at, w.IntN(10))
		}},
		{"finalizer without shards", func(w *world) error {
			_, err := w.merge(parentRef(w), one(w, splitter.Manager, "somebody"), inMetadata(map[string]any{"finalizers": []any{splitterv1alpha1.ShardsFinalizer}}))
			return err
		}},
		{"shards without finalizer", func(w *world) error {
			_, err := w.merge(parentRef(w), "somebody", inMetadata(map[string]any{"finalizers": nil}))
			return err
		}},
		{"held by a finalizer of others", func(w *world) error {
			at, parent, _ := shardRef(w)
			_, err := w.merge(one(w, at, parent), "somebody", inMetadata(map[string]any{"finalizers": []any{"example.com/hold", splitterv1alpha1.ShardsFinalizer}}))
			return err
		}},
		{"foreign object in the place of a shard", func(w *world) error {
			at, _, _ := shardRef(w)
			obj := content(at.gvr, at.Name, 7)
			obj.SetLabels(map[string]string{syncerv1alpha1.ClusterLabel: "elsewhere"}) // else the splitter would divide it
			after, err := w.create(at, "somebody", obj)
			if err == nil {
				w.keep(at, after)
			}
			return err
		}},
		{"half-written shard", func(w *world) error { return writeShard(w, splitter.Manager) }},
		{"foreign object with our marks", func(w *world) error { return writeShard(w, "somebody") }},
		{"marks lost", func(w *world) error {
			at, _, _ := shardRef(w)
			labels, annotations := map[string]any{}, map[string]any{}
			for _, mark := range []string{splitterv1alpha1.ParentAnnotation, splitterv1alpha1.ClusterAnnotation} {
				if w.IntN(2) == 0 {
					annotations[mark] = one[any](w, nil, "another", "")
				}
			}
			for _, mark := range []string{splitterv1alpha1.ParentLabel, syncerv1alpha1.ClusterLabel} {
				if w.IntN(3) == 0 {
					labels[mark] = one[any](w, nil, "another", "b")
				}
			}
			_, err := w.merge(at, "somebody", inMetadata(map[string]any{"labels": labels, "annotations": annotations}))
			return err
		}},
		{"shard edited", func(w *world) error {
			at, _, _ := shardRef(w)
			_, err := w.merge(at, one(w, "somebody", splitter.Manager), map[string]any{"spec": map[string]any{"replicas": w.IntN(12), "paused": one[any](w, nil, true)}})
			return err
		}},
		{"shard deleted", func(w *world) error { at, _, _ := shardRef(w); return w.delete(at) }},
		{"status of an older generation", func(w *world) error {
			at, parent, _ := shardRef(w)
			at = one(w, at, at, parent)
			obj, err := w.get(at)
			if err != nil {
				return err
			}
			replicas := int64(w.IntN(9))
			_, err = w.merge(at, "cluster", map[string]any{"status": map[string]any{
				"observedGeneration": max(0, obj.GetGeneration()+int64(w.IntN(4))-2), "replicas": replicas, "updatedReplicas": int64(w.IntN(9)),
				"readyReplicas": min(replicas, int64(w.IntN(9))), "availableReplicas": 0,
				"conditions": []any{map[string]any{"type": one(w, splitter.ConditionPlaced, "Progressing", "ReplicaFailure"), "status": one(w, "True", "False"), "reason": "Odd"}},
			}}, "status")
			return err
		}},
		{"malformed annotations", func(w *world) error {
			at, parent, _ := shardRef(w)
			_, err := w.merge(one(w, at, parent), "somebody", inMetadata(map[string]any{"annotations": map[string]any{
				syncerv1alpha1.UnscheduledAnnotationPrefix + one(w, "a", "b"): one(w, "", "{", `{"pods":-1}`, "null", `{"pods":"many"}`),
				splitterv1alpha1.PlacementAnnotation:                          one(w, ",,", "a,a,nowhere", ""),
			}}))
			return err
		}},
	}
}

// writeShard writes an object that is, or looks like, the shard of a random parent.
func writeShard(w *world, manager string) error {
	at, parent, cluster := shardRef(w)
	return writeMarked(w, manager, splitterv1alpha1.ParentLabel, at, parent, cluster)
}

// writeMarked writes an object that has, or has almost, the marks of an object of owner in a cluster. label is the key of
// the label with the owner's UID.
func writeMarked(w *world, manager, label string, at, owner ref, cluster string) error {
	uid := "gone"
	if o, err := w.get(owner); err == nil && w.IntN(4) > 0 {
		uid = string(o.GetUID())
	}
	obj := content(at.gvr, owner.Name, w.IntN(10))
	obj.SetLabels(map[string]string{label: uid, syncerv1alpha1.ClusterLabel: one(w, cluster, cluster, "elsewhere")})
	obj.SetAnnotations(map[string]string{
		splitterv1alpha1.ParentAnnotation: one(w, owner.Name, owner.Name, "another"), splitterv1alpha1.ClusterAnnotation: one(w, cluster, cluster, "another"),
	})
	at.Name = one(w, at.Name, at.Name, at.Name+"-copy")
	_, err := w.apply(at, manager, obj)
	return err
}

// divided returns an error unless the end state of a Splitter is as documented.
func divided(ctx context.Context, w *world) error {
	all, err := w.list(ctx, upstream, deployments)
	if err != nil {
		return err
	}
	clusters, err := w.list(ctx, upstream, syncTargets)
	if err != nil {
		return err
	}
	errs := []error{w.untouched()}
	shardsOf := map[types.NamespacedName][]*unstructured.Unstructured{}
	for key, obj := range all {
		parent, ok := shardOf(obj)
		if !ok {
			continue
		}
		of := types.NamespacedName{Namespace: key.Namespace, Name: parent}
		if p := all[of]; p == nil || string(p.GetUID()) != obj.GetLabels()[splitterv1alpha1.ParentLabel] {
			if obj.GetDeletionTimestamp() == nil {
				errs = append(errs, fmt.Errorf("shard %s has no parent: %s", key, brief(obj)))
			}
			continue
		}
		shardsOf[of] = append(shardsOf[of], obj)
	}
	for key, obj := range all {
		if _, ok := obj.GetLabels()[splitterv1alpha1.ParentLabel]; ok {
			continue
		}
		if err := judgeParent(obj, shardsOf[key], all, clusters); err != nil {
			text := ""
			for _, s := range shardsOf[key] {
				text += "\n  shard: " + brief(s)
			}
			errs = append(errs, fmt.Errorf("%s: %w\n  parent: %s%s", key, err, brief(obj), text))
		}
	}
	return errors.Join(errs...)
}

// shardOf returns the name of a shard's parent, false if the object is not a shard.
func shardOf(obj *unstructured.Unstructured) (parent string, ok bool) {
	marks := obj.GetAnnotations()
	parent = marks[splitterv1alpha1.ParentAnnotation]
	return parent, obj.GetLabels()[splitterv1alpha1.ParentLabel] != "" && obj.GetName() == splitter.ShardName(parent, marks[splitterv1alpha1.ClusterAnnotation])
}

func judgeParent(parent *unstructured.Unstructured, shards []*unstructured.Unstructured, all, clusters map[types.NamespacedName]*unstructured.Unstructured) error {
	given := slices.ContainsFunc(slices.Collect(maps.Keys(parent.GetLabels())), func(label string) bool {
		return label == syncerv1alpha1.ClusterLabel || strings.HasPrefix(label, syncerv1alpha1.StateLabelPrefix)
	})
	held := slices.ContainsFunc([]string{"a", "b", "c"}, func(cluster string) bool {
		s := all[types.NamespacedName{Namespace: parent.GetNamespace(), Name: splitter.ShardName(parent.GetName(), cluster)}]
		return s != nil && s.GetDeletionTimestamp() != nil
	})
	finalized := slices.Contains(parent.GetFinalizers(), splitterv1alpha1.ShardsFinalizer)
	if given || parent.GetDeletionTimestamp() != nil {
		switch {
		case held:
			return nil
		case finalized:
			return errors.New("it is not to be divided, and has the finalizer")
		case len(shards) > 0:
			return errors.New("it is not to be divided, and has shards")
		}
		return nil
	}
	if !finalized {
		return errors.New("it has no finalizer")
	}
	if held {
		return nil
	}
	var sum int64
	for _, s := range shards {
		cluster := s.GetAnnotations()[splitterv1alpha1.ClusterAnnotation]
		if s.GetLabels()[syncerv1alpha1.ClusterLabel] != cluster {
			return fmt.Errorf("its shard for %s is labelled for %q", cluster, s.GetLabels()[syncerv1alpha1.ClusterLabel])
		}
		n, _, _ := unstructured.NestedInt64(s.Object, "spec", "replicas")
		sum += n
		image := func(o *unstructured.Unstructured) any {
			containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			return containers[0].(map[string]any)["image"]
		}
		if image(s) != image(parent) {
			return fmt.Errorf("its shard for %s has image %v", cluster, image(s))
		}
	}
	placed, err := judgePlaced(parent, sum, all)
	if err != nil {
		return err
	}
	for _, s := range shards {
		// A shard may stay in a cluster that is gone only while some replicas are unplaced.
		if cluster := s.GetAnnotations()[splitterv1alpha1.ClusterAnnotation]; placed && clusters[types.NamespacedName{Name: cluster}] == nil {
			return fmt.Errorf("it is placed, and has a shard for %s, which is no cluster", cluster)
		}
	}
	return judgeFolded(parent, shards)
}

// judgePlaced requires that the parent's condition Placed agrees with its shards. Either the
// shards' replicas and the unplaced replicas are enough for the parent's replicas, or an object
// that is not a shard has a shard's name. judgePlaced reports whether all replicas are placed.
func judgePlaced(parent *unstructured.Unstructured, sum int64, all map[types.NamespacedName]*unstructured.Unstructured) (placed bool, _ error) {
	wanted, _, _ := unstructured.NestedInt64(parent.Object, "spec", "replicas")
	condition := conditionIn(parent, splitter.ConditionPlaced)
	switch {
	case condition == nil:
		return false, errors.New("it has no condition Placed")
	case condition["reason"] == "NameTaken":
		for _, cluster := range []string{"a", "b", "c"} {
			name := splitter.ShardName(parent.GetName(), cluster)
			if obj := all[types.NamespacedName{Namespace: parent.GetNamespace(), Name: name}]; obj != nil {
				if _, ok := shardOf(obj); !ok {
					return false, nil
				}
			}
		}
		return false, errors.New("no name of its shards is taken")
	case condition["status"] == "True" && sum == wanted:
		return true, nil
	case condition["status"] == "True":
		return false, fmt.Errorf("it is placed, with %d of %d replicas", sum, wanted)
	}
	var unplaced int64
	if _, err := fmt.Sscanf(fmt.Sprint(condition["message"]), "%d replicas find no place", &unplaced); err != nil {
		return false, fmt.Errorf("its condition Placed says %v", condition["message"])
	}
	if sum < wanted-unplaced || sum > wanted {
		return false, fmt.Errorf("shards have %d replicas and %d find no place, of %d", sum, unplaced, wanted)
	}
	return false, nil
}

// conditionIn returns a condition of an object, nil if the object lacks it.
func conditionIn(obj *unstructured.Unstructured, name string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, v := range conditions {
		if c, ok := v.(map[string]any); ok && c["type"] == name {
			return c
		}
	}
	return nil
}

// judgeFolded requires that each counter in the parent's status is the sum of the shards' counters.
// It also requires that the parent's observedGeneration is current if all shards were observed.
func judgeFolded(parent *unstructured.Unstructured, shards []*unstructured.Unstructured) error {
	observed := conditionIn(parent, splitter.ConditionPlaced)["reason"] != "NameTaken"
	for _, s := range shards {
		n, _, _ := unstructured.NestedInt64(s.Object, "status", "observedGeneration")
		observed = observed && n >= s.GetGeneration()
	}
	for _, counter := range []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"} {
		var sum int64
		for _, s := range shards {
			n, _, _ := unstructured.NestedInt64(s.Object, "status", counter)
			sum += n
		}
		if got, _, _ := unstructured.NestedInt64(parent.Object, "status", counter); got != sum {
			return fmt.Errorf("its status has %s %d, and those of its shards make %d", counter, got, sum)
		}
	}
	if got, _, _ := unstructured.NestedInt64(parent.Object, "status", "observedGeneration"); observed && got != parent.GetGeneration() {
		return fmt.Errorf("all shards were observed, and its observedGeneration is %d, not %d", got, parent.GetGeneration())
	}
	return nil
}
