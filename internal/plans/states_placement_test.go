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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

func placementBeginning(*rand.Rand) beginning {
	return beginning{
		servers: servers(), holds: placed,
		loops:   []perturb.Loop{placing(placement.Options{}), readyTargets()},
		strokes: slices.Concat(strokesOfTargets(), strokesOfPlaced()),
	}
}

func policyRef(w *world) ref {
	return ref{upstream, policies, types.NamespacedName{Namespace: "default", Name: one(w, "p", "q")}}
}

// placedRef returns a random object that may be placed: a workload, or a ConfigMap of its pods.
func placedRef(w *world) ref {
	at := parentRef(w)
	at.gvr = one(w, deployments, deployments, configMaps)
	return at
}

// givenPlaced makes a user apply an object. The pods of a workload may refer to the ConfigMap x.
func givenPlaced(w *world, at ref) error {
	obj := content(at.gvr, at.Name, 1+w.IntN(4))
	if at.gvr == deployments && w.IntN(2) == 0 {
		volumes := []any{map[string]any{"name": "settings", "configMap": map[string]any{"name": "x"}}}
		if err := unstructured.SetNestedSlice(obj.Object, volumes, "spec", "template", "spec", "volumes"); err != nil {
			return err
		}
	}
	labels := map[string]string{"team": one(w, "one", "two")}
	if w.IntN(8) == 0 {
		labels[syncerv1alpha1.ClusterLabel] = "a"
	}
	obj.SetLabels(labels)
	after, err := w.apply(at, "user", obj)
	if err == nil {
		w.keep(at, after, "team", syncerv1alpha1.ClusterLabel)
	}
	return err
}

// wideRef returns the place of a random ClusterPlacementPolicy.
func wideRef(w *world) ref {
	return ref{upstream, wide, types.NamespacedName{Name: one(w, "everywhere", "elsewhere")}}
}

func givenPolicy(w *world, at ref, spec map[string]any) error {
	kind := "PlacementPolicy"
	if at.gvr == wide {
		kind = "ClusterPlacementPolicy"
	}
	_, err := w.apply(at, "user", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": splitterv1alpha1.GroupVersion.String(), "kind": kind, "spec": spec,
	}})
	return err
}

// anyPolicy returns the spec of a random policy.
func anyPolicy(w *world) map[string]any {
	spec := map[string]any{"dependents": w.IntN(2) == 0, "maxClusters": int64(w.IntN(3)), "priority": int64(w.IntN(3)), "mode": one(w, "Divide", "Divide", "Duplicate", "None")}
	if w.IntN(2) == 0 {
		spec["clusterSelector"] = map[string]any{"matchLabels": map[string]any{"zone": one(w, "one", "two")}}
	}
	if w.IntN(2) == 0 {
		spec["selector"] = map[string]any{"matchLabels": map[string]any{"team": one(w, "one", "two")}}
	}
	if w.IntN(3) == 0 {
		spec["spreadBy"] = []any{"zone"}
		if w.IntN(2) == 0 {
			spec["groups"] = []any{map[string]any{"key": "zone", "minGroups": int64(w.IntN(2)), "maxClusters": int64(w.IntN(3))}}
		}
	}
	if w.IntN(3) == 0 {
		spec["tolerations"] = []any{map[string]any{"key": "repair", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(30)}, map[string]any{"key": "gpu", "value": one(w, "a", "b")}}
	}
	if w.IntN(3) == 0 {
		spec["clusters"] = []any{map[string]any{"name": one(w, "a", "b", "nowhere"), "weight": int64(w.IntN(3)), "max": int64(w.IntN(3))}}
	}
	return spec
}

// strokesOfPlaced returns strokes on policies and on the objects that the policies place.
func strokesOfPlaced() []stroke {
	made := stroke{"applied", func(w *world) error { return givenPlaced(w, placedRef(w)) }}
	governs := stroke{"policy applied", func(w *world) error {
		return givenPolicy(w, policyRef(w), anyPolicy(w))
	}}
	governsAll := stroke{"policy of all namespaces applied", func(w *world) error {
		spec := anyPolicy(w)
		if w.IntN(2) == 0 {
			spec["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"environment": one(w, "test", "production")}}
		}
		return givenPolicy(w, wideRef(w), spec)
	}}
	return []stroke{
		made, made, made, made, governs, governs, governs, governsAll, governsAll,
		{"cluster tainted", func(w *world) error {
			taints := []any{}
			if w.IntN(3) > 0 {
				taints = append(taints, map[string]any{"key": "repair", "effect": "NoExecute", "timeAdded": one(w, "1999-12-31T00:00:00Z", "2200-01-01T00:00:00Z")})
			}
			if w.IntN(3) > 0 {
				taints = append(taints, map[string]any{"key": "gpu", "value": "a", "effect": one(w, "NoSchedule", "PreferNoSchedule", "NoExecute")})
			}
			_, err := w.merge(targetRef(w), "user", map[string]any{"spec": map[string]any{"taints": taints}})
			return err
		}},
		{"policy of all namespaces deleted", func(w *world) error { return w.delete(wideRef(w)) }},
		{"namespace labelled", func(w *world) error {
			at := ref{upstream, namespaces, types.NamespacedName{Name: "default"}}
			_, err := w.merge(at, "user", inMetadata(map[string]any{"labels": map[string]any{"environment": one[any](w, nil, "test", "production")}}))
			return err
		}},
		{"spec A, B, A", func(w *world) error {
			at := policyRef(w)
			for _, zone := range []string{"one", "two", "one"} {
				if err := givenPolicy(w, at, map[string]any{"clusterSelector": map[string]any{"matchLabels": map[string]any{"zone": zone}}}); err != nil {
					return err
				}
				time.Sleep(time.Duration(w.IntN(3)) * time.Second)
			}
			return nil
		}},
		{"policy that cannot be read", func(w *world) error {
			return givenPolicy(w, one(w, policyRef(w), policyRef(w), wideRef(w)), map[string]any{"clusterSelector": map[string]any{"matchExpressions": []any{
				map[string]any{"key": one(w, "zone", "not a key"), "operator": one(w, "In", "Odd"), "values": []any{}},
			}}})
		}},
		{"policy deleted", func(w *world) error { return w.delete(policyRef(w)) }},
		{"deleted", func(w *world) error { return w.delete(placedRef(w)) }},
		{"replaced", func(w *world) error {
			at := placedRef(w)
			if err := w.remove(at); err != nil {
				return err
			}
			return givenPlaced(w, at)
		}},
		{"half-written placement", func(w *world) error {
			fields := map[string]any{"annotations": map[string]any{
				splitterv1alpha1.PlacementAnnotation: one[any](w, nil, "a", "a,b", "b,nowhere", ""),
				splitterv1alpha1.LeavingAnnotation:   one[any](w, nil, "a", "c"),
				splitterv1alpha1.PlacedByAnnotation:  one[any](w, nil, "p", "gone", splitterv1alpha1.PlacedByReference, splitterv1alpha1.PlacedByDefault),
			}}
			if w.IntN(2) == 0 {
				fields["labels"] = map[string]any{syncerv1alpha1.StateLabelPrefix + one(w, "a", "b"): one[any](w, nil, syncerv1alpha1.StateSync)}
			}
			_, err := w.merge(placedRef(w), one(w, placement.Manager, "somebody"), inMetadata(fields))
			return err
		}},
		{"malformed annotations", func(w *world) error {
			_, err := w.merge(placedRef(w), "somebody", inMetadata(map[string]any{"annotations": map[string]any{
				splitterv1alpha1.DivisionAnnotation:  one(w, "{", "[]", `{"mode":"Odd"}`, `{"clusters":7}`, "null"),
				splitterv1alpha1.PlacementAnnotation: one(w, ",,", "a,a,nowhere", " b , a ", "/"),
			}}))
			return err
		}},
		{"labels of other tools", func(w *world) error {
			_, err := w.merge(placedRef(w), "somebody", inMetadata(map[string]any{"labels": map[string]any{syncerv1alpha1.StateLabelPrefix + one(w, "a", "c"): one(w, "", "Sync", "Other")}}))
			return err
		}},
		{"status of a policy from elsewhere", func(w *world) error {
			_, err := w.merge(one(w, policyRef(w), wideRef(w)), "somebody", map[string]any{"status": map[string]any{
				"observedGeneration": int64(9), "clusters": int64(7), "conditions": []any{map[string]any{
					"type": "Ready", "status": one(w, "True", "False"), "reason": "Odd", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
				}},
			}}, "status")
			return err
		}},
		{"half-written shard", func(w *world) error { return writeShard(w, splitter.Manager) }},
		{"shard deleted", func(w *world) error { at, _, _ := shardRef(w); return w.remove(at) }},
	}
}

// placed returns an error unless the end state of a placement Controller is as documented.
func placed(ctx context.Context, w *world) error {
	errs := []error{w.untouched()}
	clusters, err := clustersOf(ctx, w)
	if err != nil {
		return err
	}
	all, broken, err := policiesOf(ctx, w)
	errs = append(errs, err)
	if broken {
		return errors.Join(errs...) // a broken policy stops all decisions in its namespaces
	}
	workloads, err := w.list(ctx, upstream, deployments)
	if err != nil {
		return err
	}
	settings, err := w.list(ctx, upstream, configMaps)
	if err != nil {
		return err
	}
	needed := map[string]bool{} // clusters that need the ConfigMap x
	for key, obj := range workloads {
		if err := judgeWorkload(obj, all, clusters, workloads, needed); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w\n  %s\n  %+v", key, err, brief(obj), clusters))
		}
	}
	for key, obj := range settings {
		if err := judgeSettings(obj, all, clusters, needed); err != nil {
			errs = append(errs, fmt.Errorf("ConfigMap %s: %w; it is needed in %v\n  %s", key, err, slices.Sorted(maps.Keys(needed)), brief(obj)))
		}
	}
	return errors.Join(errs...)
}

// policiesOf returns the policies that apply to the namespace default in the order of their precedence: PlacementPolicies,
// then ClusterPlacementPolicies. Their names are as in PlacedByAnnotation. broken reports whether a policy cannot be read.
// The error is not nil if a status is not as documented.
func policiesOf(ctx context.Context, w *world) (all []splitterv1alpha1.PlacementPolicy, broken bool, _ error) {
	home, err := w.get(ref{upstream, namespaces, types.NamespacedName{Name: "default"}})
	if err != nil {
		return nil, false, err
	}
	var errs []error
	for _, gvr := range []schema.GroupVersionResource{policies, wide} {
		found, err := w.list(ctx, upstream, gvr)
		if err != nil {
			return nil, false, err
		}
		var here []splitterv1alpha1.PlacementPolicy
		for _, obj := range found {
			var p splitterv1alpha1.ClusterPlacementPolicy
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &p); err != nil {
				return nil, false, err
			}
			_, err := metav1.LabelSelectorAsSelector(p.Spec.ClusterSelector)
			broken = broken || err != nil
			if ready := conditionIn(obj, string(splitterv1alpha1.ConditionReady)); ready == nil || (ready["reason"] == string(splitterv1alpha1.ReasonInvalid)) != (err != nil) || p.Status.ObservedGeneration != p.Generation {
				errs = append(errs, fmt.Errorf("the status of %s %s is %v", obj.GetKind(), p.Name, obj.Object["status"]))
			}
			if s := p.Spec.NamespaceSelector; s != nil && s.MatchLabels["environment"] != home.GetLabels()["environment"] {
				continue
			}
			if gvr == wide {
				p.Name = splitterv1alpha1.PlacedByClusterWide + p.Name
			}
			here = append(here, splitterv1alpha1.PlacementPolicy{ObjectMeta: p.ObjectMeta, Spec: p.Spec.PlacementPolicySpec})
		}
		slices.SortFunc(here, func(a, b splitterv1alpha1.PlacementPolicy) int {
			if a.Spec.Priority != b.Spec.Priority {
				return int(b.Spec.Priority - a.Spec.Priority)
			}
			return strings.Compare(a.Name, b.Name)
		})
		all = append(all, here...)
	}
	return all, broken, errors.Join(errs...)
}

// clustersOf returns the clusters of the end state, with their States.
func clustersOf(ctx context.Context, w *world) ([]splitter.Cluster, error) {
	found, err := w.list(ctx, upstream, syncTargets)
	if err != nil {
		return nil, err
	}
	var clusters []splitter.Cluster
	for _, obj := range found {
		beat, _, _ := unstructured.NestedString(obj.Object, "status", "lastSyncerHeartbeatTime")
		if conditionIn(obj, "Ready")["status"] != "True" || beat != "" {
			continue // not Ready, or with a heartbeat from long ago
		}
		c := splitter.Cluster{Name: obj.GetName(), Labels: obj.GetLabels(), State: splitter.Placeable}
		if holds, _, _ := unstructured.NestedBool(obj.Object, "spec", "unschedulable"); holds {
			c.State = splitter.Holding
		}
		var target syncerv1alpha1.SyncTarget
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &target); err != nil {
			return nil, err
		}
		c.Taints = target.Spec.Taints
		evict, _, _ := unstructured.NestedString(obj.Object, "spec", "evictAfter")
		if strings.HasPrefix(evict, "2000") || obj.GetDeletionTimestamp() != nil {
			c.State = splitter.Draining
		}
		clusters = append(clusters, c)
	}
	return clusters, nil
}

func names(text string) []string {
	found := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	slices.Sort(found)
	return slices.Compact(found)
}

func policyFor(obj *unstructured.Unstructured, all []splitterv1alpha1.PlacementPolicy, divided bool) *splitterv1alpha1.PlacementPolicy {
	for i, p := range all {
		if p.Spec.Selector == nil && divided || p.Spec.Selector != nil && p.Spec.Selector.MatchLabels["team"] == obj.GetLabels()["team"] {
			return &all[i]
		}
	}
	return nil
}

// judgePolicy requires that policy p has placed obj in exactly the clusters that p chooses and
// those in more. obj may also be leaving clusters, but only those in held. If p finds no cluster to
// choose, judgePolicy does not check the placement.
func judgePolicy(obj *unstructured.Unstructured, p *splitterv1alpha1.PlacementPolicy, clusters []splitter.Cluster, more []string, held map[string]bool) error {
	marks := obj.GetAnnotations()
	if marks[splitterv1alpha1.PlacedByAnnotation] != p.Name {
		return fmt.Errorf("policy %s selects it, and it is placed by %q", p.Name, marks[splitterv1alpha1.PlacedByAnnotation])
	}
	is, leaving := names(marks[splitterv1alpha1.PlacementAnnotation]), names(marks[splitterv1alpha1.LeavingAnnotation])
	stays := slices.DeleteFunc(slices.Clone(is), func(c string) bool { return slices.Contains(leaving, c) })
	for _, c := range leaving {
		if !held[c] {
			return fmt.Errorf("it leaves %s, and nothing holds it there", c)
		}
	}
	clusters, _ = placement.Tolerate(p.Spec.Tolerations, clusters, time.Now())
	chosen, err := placement.Choose(p.Spec, obj.GetUID(), clusters, stays)
	if err != nil {
		return err
	}
	wanted := slices.Compact(slices.Sorted(slices.Values(slices.Concat(chosen, more))))
	if len(wanted) == 0 && p.Spec.Mode != splitterv1alpha1.PlacementNone {
		return nil // there is no cluster to choose, and nothing changes
	}
	if !slices.Equal(stays, wanted) {
		return fmt.Errorf("policy %s wants it in %v, and it is in %v", p.Name, wanted, stays)
	}
	return nil
}

func judgeWorkload(obj *unstructured.Unstructured, all []splitterv1alpha1.PlacementPolicy, clusters []splitter.Cluster, others map[types.NamespacedName]*unstructured.Unstructured, needed map[string]bool) error {
	for label := range obj.GetLabels() {
		if label == syncerv1alpha1.ClusterLabel || label == splitterv1alpha1.ParentLabel || strings.HasPrefix(label, syncerv1alpha1.StateLabelPrefix) {
			obj.SetDeletionTimestamp(new(metav1.Now())) // another client decides where it is placed
		}
	}
	if strings.Contains(obj.GetAnnotations()[splitterv1alpha1.DivisionAnnotation], `"dependents":true`) && refersToX(obj) {
		for _, c := range names(obj.GetAnnotations()[splitterv1alpha1.PlacementAnnotation]) {
			needed[c] = true
		}
	}
	p := policyFor(obj, all, true)
	if p == nil || obj.GetDeletionTimestamp() != nil {
		return nil
	}
	held := map[string]bool{}
	for _, s := range others {
		if _, ok := shardOf(s); ok && s.GetLabels()[splitterv1alpha1.ParentLabel] == string(obj.GetUID()) {
			held[s.GetAnnotations()[splitterv1alpha1.ClusterAnnotation]] = true
		}
	}
	return judgePolicy(obj, p, clusters, nil, held)
}

func refersToX(obj *unstructured.Unstructured) bool {
	volumes, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "volumes")
	return len(volumes) > 0
}

func judgeSettings(obj *unstructured.Unstructured, all []splitterv1alpha1.PlacementPolicy, clusters []splitter.Cluster, needed map[string]bool) error {
	marks, labels := obj.GetAnnotations(), obj.GetLabels()
	if _, given := labels[syncerv1alpha1.ClusterLabel]; given || obj.GetDeletionTimestamp() != nil || obj.GetName() == "kube-root-ca.crt" {
		return nil
	}
	text, ever := marks[splitterv1alpha1.PlacementAnnotation]
	for _, c := range names(text) {
		if labels[syncerv1alpha1.StateLabelPrefix+c] != syncerv1alpha1.StateSync {
			return fmt.Errorf("it is placed in %s, and has no label for it", c)
		}
	}
	for label := range labels {
		if c, ok := strings.CutPrefix(label, syncerv1alpha1.StateLabelPrefix); ok && !slices.Contains(names(text), c) {
			return nil // another tool wrote this label
		}
	}
	var follows []string
	if obj.GetName() == "x" {
		follows = slices.Sorted(maps.Keys(needed))
	}
	if p := policyFor(obj, all, false); p != nil {
		if p.Spec.Mode == splitterv1alpha1.PlacementNone {
			follows = nil
		}
		return judgePolicy(obj, p, clusters, follows, nil)
	}
	for _, c := range follows {
		if !slices.Contains(names(text), c) {
			return fmt.Errorf("a workload in %s refers to it, and it is in %q", c, text)
		}
	}
	if ever && marks[splitterv1alpha1.PlacedByAnnotation] == splitterv1alpha1.PlacedByReference && !slices.Equal(names(text), follows) {
		return fmt.Errorf("it is in %q", text)
	}
	return nil
}
