// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/atoll-dev/atoll/splitter/rollout"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// rollout returns the shards of a Deployment for the next step towards the wanted replicas and the
// parent's template.
func (k deployments) rollout(parent *unstructured.Unstructured, opts Rollout, want map[string]int64, have []Shard) ([]Shard, error) {
	hash, err := templateHash(parent)
	if err != nil {
		return nil, err
	}
	var clusters []rollout.Cluster
	shards := map[string]Shard{}
	for _, s := range have {
		// A shard in an unreachable cluster that shall have none is deleted: see Options.Grace.
		if _, ok := want[s.Cluster]; s.exists() && (ok || !s.Silent) {
			shards[s.Cluster] = s
			c := k.observe(parent, hash, want[s.Cluster], s)
			c.Gone = !ok // the Placement left the cluster out
			clusters = append(clusters, c)
		}
	}
	for _, cluster := range sorted(want) {
		if shards[cluster].Object == nil {
			clusters = append(clusters, rollout.Cluster{Name: cluster, Want: want[cluster]})
		}
	}
	b := rollout.Budget{Replicas: numberOr(parent, 1, k.replicas...), MoveSurge: opts.MoveSurge}
	b.MaxUnavailable, b.MaxSurge = limits(parent, b.Replicas)
	steps, err := rollout.Plan(b, rollout.Options{Order: opts.Order, Clusters: opts.Clusters}, clusters)
	if err != nil {
		return nil, err
	}
	var next []Shard
	for i, step := range steps {
		if step.Replicas == 0 {
			continue
		}
		s, err := k.shard(parent, step.Name, step.Replicas)
		if err != nil {
			return nil, err
		}
		permit(s.Object, hash, shards[step.Name].annotations(), clusters[i], step)
		next = append(next, s)
	}
	slices.SortFunc(next, func(a, b Shard) int { return strings.Compare(a.Cluster, b.Cluster) })
	return next, nil
}

// unpaced returns the shards of a Deployment whose clusters follow the parent's strategy each by itself. A shard at rest
// keeps its TemplateAnnotation as long as its template stays: then all its pods still have the template.
func (k deployments) unpaced(parent *unstructured.Unstructured, mode Mode, plan Plan, want map[string]int64, have []Shard) ([]Shard, error) {
	hash, err := templateHash(parent)
	if err != nil {
		return nil, err
	}
	shards, err := k.paced(parent, mode, plan, want, have)
	present := byCluster(have)
	for _, s := range shards {
		had := present[s.Cluster].annotations()
		if _, marked := had[v1alpha1.RolloutAnnotation]; !marked && had[v1alpha1.TemplateAnnotation] == hash && sameTemplate(parent, present[s.Cluster].Object, hash) {
			s.Object.SetAnnotations(map[string]string{v1alpha1.TemplateAnnotation: hash})
		}
	}
	return shards, err
}

// observe returns the state of a shard.
func (k deployments) observe(parent *unstructured.Unstructured, hash string, want int64, s Shard) rollout.Cluster {
	status, _, _ := unstructured.NestedMap(s.Object.Object, "status")
	c := rollout.Cluster{
		Name: s.Cluster, Want: want, Spec: count(s.Object, 1, k.replicas...),
		Pods: count(s.Object, 0, "status", "replicas"), Available: max(0, k.available(s.Object)),
		Delayed: delayed(s.Object) || delayed(parent), Unreported: len(status) == 0,
		Unobserved:  numberOr(s.Object, 0, "status", "observedGeneration") < s.Object.GetGeneration(),
		Unreachable: s.Silent,
	}
	updated := count(s.Object, 0, "status", "updatedReplicas")
	annotations := s.annotations()
	_, marked := annotations[v1alpha1.RolloutAnnotation]
	_, paced := annotations[v1alpha1.TemplateAnnotation]
	complete := !c.Unobserved && updated == c.Pods && c.Pods == c.Available && c.Pods == c.Spec
	// Before its rollout begins, a shard's strategy permits nothing, since all its pods have its template. A
	// shard without the TemplateAnnotation was written by another mode or an earlier version: until its
	// cluster has observed that spec, its pods may be old.
	begun := updated < c.Pods || marked && !complete || !paced && c.Unobserved && s.Object.GetGeneration() > 1
	c.Outdated = begun || !sameTemplate(parent, s.Object, hash)
	if begun {
		if paused, _, _ := unstructured.NestedBool(s.Object.Object, "spec", "paused"); !paused {
			c.Unavailable, c.Surge = limits(s.Object, c.Spec)
		}
		if !c.Unobserved && updated == c.Pods && c.Pods <= c.Spec {
			// Nothing old is left to replace. So the rest of its part is free for others.
			c.Unavailable, c.Surge = min(c.Unavailable, max(0, c.Spec-c.Available)), 0
		}
	}
	if c.Unobserved {
		_, _ = fmt.Sscanf(annotations[v1alpha1.PriorAnnotation], priorFormat, &c.Prior.Unavailable, &c.Prior.Surge, &c.Prior.Fewer)
	}
	return c
}

// delayed reports whether pods become available some time after they are ready.
func delayed(obj *unstructured.Unstructured) bool {
	return numberOr(obj, 0, "spec", "minReadySeconds") > 0
}

// count reads a number of replicas. It returns otherwise if the field is absent or not an integer.
func count(obj *unstructured.Unstructured, otherwise int64, path ...string) int64 {
	return replicas(numberOr(obj, otherwise, path...))
}

// replicas returns the number nearest to n that is a valid number of replicas.
func replicas(n int64) int64 { return min(max(0, n), math.MaxInt32) }

// permit sets the strategy and the annotations of a shard to those of the step. A shard whose pods all
// have the parent's template keeps the parent's strategy. had are the present annotations of the shard.
func permit(shard *unstructured.Unstructured, hash string, had map[string]string, c rollout.Cluster, step rollout.Step) {
	spec, _ := shard.Object["spec"].(map[string]any)
	if paused, _ := spec["paused"].(bool); paused { // by the parent
		step.Roll = false
	}
	if !step.Roll {
		step.Unavailable, step.Surge = 0, 0
	}
	shard.SetAnnotations(marks(hash, had, c, step))
	if !c.Outdated {
		return
	}
	if !step.Roll {
		spec["paused"], step.Surge = true, kept(c, step)
		if step.Surge == 0 {
			step.Unavailable = 1 // zero for both numbers is invalid
		}
	}
	spec["strategy"] = map[string]any{
		"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": step.Unavailable, "maxSurge": step.Surge},
	}
}

// kept returns the surge of a paused shard. A paused shard replaces nothing, but it scales to its
// replicas and maxSurge.
func kept(c rollout.Cluster, step rollout.Step) int64 { return max(0, c.Pods-step.Replicas) }

// priorFormat is the form of the PriorAnnotation.
const priorFormat = "maxUnavailable=%d,maxSurge=%d,fewer=%d"

// marks returns the annotations of a shard for the step. The PriorAnnotation changes only together
// with the spec, so that it causes no write of its own.
func marks(hash string, had map[string]string, c rollout.Cluster, step rollout.Step) map[string]string {
	next := map[string]string{v1alpha1.TemplateAnnotation: hash}
	if c.Outdated {
		next[v1alpha1.RolloutAnnotation] = "true"
	}
	prior := had[v1alpha1.PriorAnnotation]
	if had[v1alpha1.TemplateAnnotation] != hash || had[v1alpha1.RolloutAnnotation] != next[v1alpha1.RolloutAnnotation] ||
		step.Replicas != c.Spec || step.Unavailable != c.Unavailable || step.Surge != c.Surge {
		p := c.PriorTo(step)
		if c.Outdated && !step.Roll {
			p.Surge = max(p.Surge, kept(c, step))
		}
		if prior = ""; p != (rollout.Prior{}) {
			prior = fmt.Sprintf(priorFormat, p.Unavailable, p.Surge, p.Fewer)
		}
	}
	if prior != "" {
		next[v1alpha1.PriorAnnotation] = prior
	}
	return next
}

// limits returns the maxUnavailable and maxSurge of a Deployment with the given replicas, by the rules
// of its controller: percentages of maxUnavailable are rounded down and those of maxSurge up, and if
// both are zero, maxUnavailable is one. With Recreate, all replicas may be unavailable.
func limits(obj *unstructured.Unstructured, desired int64) (unavailable, surge int64) {
	if recreates(obj) {
		return desired, 0
	}
	limit := func(field string, up bool) int64 {
		v, ok, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "strategy", "rollingUpdate", field)
		if !ok {
			v = "25%"
		}
		n, _ := resolve(v, desired, up)
		return n
	}
	unavailable, surge = min(desired, limit("maxUnavailable", false)), limit("maxSurge", true)
	if unavailable == 0 && surge == 0 {
		unavailable = 1
	}
	return unavailable, surge
}

// resolve returns the number of replicas that a field with a number or a percentage means. It returns false if the field
// cannot be read.
func resolve(v any, desired int64, up bool) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return replicas(v), true
	case string:
		limit := intstr.FromString(v)
		n, err := intstr.GetScaledValueFromIntOrPercent(&limit, int(replicas(desired)), up)
		return replicas(int64(n)), err == nil
	}
	return 0, false
}

// recreates reports whether a Deployment has the strategy Recreate.
func recreates(obj *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(obj.Object, "spec", "strategy", "type")
	return kind == "Recreate"
}

// templateHash returns a hash of the pod template of a Deployment.
func templateHash(obj *unstructured.Unstructured) (string, error) {
	content, err := json.Marshal(template(obj))
	if err != nil {
		return "", fmt.Errorf("spec.template: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8]), nil
}

// template returns the pod template of a Deployment, without a creationTimestamp. It does not modify
// obj.
func template(obj *unstructured.Unstructured) map[string]any {
	t, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "template")
	all, _ := t.(map[string]any)
	metadata, _ := all["metadata"].(map[string]any)
	if _, ok := metadata["creationTimestamp"]; ok {
		all, metadata = maps.Clone(all), maps.Clone(metadata)
		delete(metadata, "creationTimestamp")
		all["metadata"] = metadata
	}
	return all
}

// sameTemplate reports whether a shard has the parent's template, whose hash is given: the Splitter
// wrote it last, and no other client has changed a field of it since. Webhooks may have added fields.
// Without a TemplateAnnotation it is not known which fields the Splitter wrote.
func sameTemplate(parent, shard *unstructured.Unstructured, hash string) bool {
	if !contains(template(shard), template(parent)) {
		return false
	}
	written, paced := shard.GetAnnotations()[v1alpha1.TemplateAnnotation]
	return written == hash || !paced && contains(template(parent), template(shard))
}

// contains reports whether a value has all of the given content. Maps and lists may have more.
func contains(value, content any) bool {
	switch content := content.(type) {
	case nil:
		return true
	case map[string]any:
		value, _ := value.(map[string]any)
		for name, v := range content {
			if !contains(value[name], v) {
				return false
			}
		}
		return true
	case []any:
		value, _ := value.([]any)
		for _, v := range content {
			if !slices.ContainsFunc(value, func(has any) bool { return contains(has, v) }) {
				return false
			}
		}
		return true
	}
	return value == content
}
