// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// scalable is a Kind whose workloads an autoscaler can scale.
type scalable interface {
	counting
	// setReplicas sets the desired replicas of a parent or shard.
	setReplicas(obj *unstructured.Unstructured, n int64) error
	// limitAvailable sets the available replicas in the status of a shard to at most n.
	limitAvailable(shard *unstructured.Unstructured, n int64)
}

func (k replicated) setReplicas(obj *unstructured.Unstructured, n int64) error {
	if err := unstructured.SetNestedField(obj.Object, n, k.replicas...); err != nil {
		return fmt.Errorf("set the replicas of %s: %w", obj.GetName(), err)
	}
	return nil
}

func (k replicated) limitAvailable(shard *unstructured.Unstructured, n int64) {
	if k.available(shard) <= n {
		return
	}
	path := k.t.Available()
	if path == nil {
		delete(shard.Object, "status") // then the shard counts as unhealthy: its type reports no number of available replicas
		return
	}
	_ = unstructured.SetNestedField(shard.Object, n, path...) // cannot fail: the field is there
}

// autoscaling is a Follower whose objects, such as HorizontalPodAutoscalers, set the replicas of the workloads that they
// follow.
type autoscaling interface {
	Follower
	scaling(autoscaler *unstructured.Unstructured, of followed, parts []Shard) scaling
}

// leads reports whether a parent of a Follower affects a workload. If several autoscalers target one workload, only the
// oldest affects it. Objects of other Followers always do.
func (s *Splitter) leads(k *kindState, parent, workload *unstructured.Unstructured) bool {
	if _, ok := k.kind.(autoscaling); !ok {
		return true
	}
	first := s.autoscaler(k, workload)
	return first != nil && first.GetUID() == parent.GetUID()
}

// autoscaler returns the object of k that sets the replicas of a workload, nil without such an object.
func (s *Splitter) autoscaler(k *kindState, workload *unstructured.Unstructured) *unstructured.Unstructured {
	follower, _ := k.kind.(Follower)
	var all []*unstructured.Unstructured
	for _, key := range k.namespaces.in(workload.GetNamespace()) {
		obj, ok := k.objects.Get(key)
		if ok && obj.GetDeletionTimestamp() == nil && s.divisible(obj) && follower.follows(obj, workload) {
			all = append(all, obj)
		}
	}
	if all == nil {
		return nil
	}
	return slices.MinFunc(all, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// scalingPlan is the decision about an autoscaled workload.
type scalingPlan struct {
	scaling

	minima   map[string]int64 // of the members
	replicas int64            // of the workload: the sum of those that the members' autoscalers want
	// moving is true while replicas move between clusters. Then replicas is not below the workload's present number, so
	// that the members get the replicas of the clusters that the workload leaves.
	moving bool
}

// scalingOf returns the decision about an autoscaled workload. It is nil if no autoscaler targets the workload, in the
// mode Duplicate, and while the Placement has not decided. The error is ErrUndecided while the autoscalers are not known.
func (s *Splitter) scalingOf(k *kindState, workload *unstructured.Unstructured, list []Cluster) (*scalingPlan, error) {
	if _, ok := k.kind.(scalable); !ok {
		return nil, nil
	}
	for _, f := range k.followers {
		kind, ok := f.kind.(autoscaling)
		if !ok {
			continue
		}
		switch err := f.objects.Err(); {
		case apierrors.IsNotFound(err):
			return nil, nil // a server that does not serve the type has no autoscalers
		case err != nil:
			return nil, fmt.Errorf("the autoscaler of %s: %w", workload.GetName(), ErrUndecided)
		}
		autoscaler := s.autoscaler(f, workload)
		if autoscaler == nil {
			continue
		}
		of := s.followed(k, workload, list)
		if !of.placed || of.duplicate {
			return nil, nil
		}
		var parts []Shard
		for _, at := range f.shards.Of(loop.KeyOf(autoscaler)) {
			if obj, ok := f.objects.Get(at); ok {
				parts = s.have(parts, obj, autoscaler, nil)
			}
		}
		plan, err := kind.scaling(autoscaler, of, parts).plan()
		if err != nil {
			return nil, fmt.Errorf("the autoscaler of %s: %w", workload.GetName(), err)
		}
		return plan, nil
	}
	return nil, nil
}

// plan decides about the members and the replicas of the workload.
func (s scaling) plan() (*scalingPlan, error) {
	minima, err := s.minima()
	if err != nil {
		return nil, err
	}
	p := &scalingPlan{scaling: s, minima: minima, replicas: s.present}
	if len(minima) == 0 {
		return p, nil // the autoscaler is paused, or no cluster may have replicas
	}
	p.replicas = 0
	begun := false
	for name, c := range s.clusters {
		least, member := minima[name]
		if !member {
			p.moving = p.moving || c.replicas > 0
			continue
		}
		p.moving = p.moving || c.floor > 0 && !(c.reported && c.settled && c.desired >= c.floor)
		begun = begun || c.reported
		p.replicas += max(least, c.wanted())
	}
	for name, least := range minima {
		if _, ok := s.clusters[name]; !ok {
			p.replicas += least
		}
	}
	if p.moving || !begun {
		p.replicas = max(p.replicas, s.present, s.min)
	}
	p.replicas = min(p.replicas, s.max)
	return p, nil
}

// cut cuts the workload. It passes copies of the shards to the Kind, with the replicas that the clusters' autoscalers have
// set.
func (p *scalingPlan) cut(k Kind, parent *unstructured.Unstructured, have []Shard) (Plan, []Shard, error) {
	kind, _ := k.(scalable)
	parent = parent.DeepCopy()
	if err := kind.setReplicas(parent, p.replicas); err != nil {
		return Plan{}, nil, err
	}
	have = slices.Clone(have)
	for i, shard := range have {
		c := p.clusters[shard.Cluster]
		if !shard.exists() || !c.scaled && !c.ending {
			continue
		}
		have[i].Object = shard.Object.DeepCopy()
		if err := kind.setReplicas(have[i].Object, max(c.wanted(), c.floor)); err != nil {
			return Plan{}, nil, err
		}
		if _, member := p.minima[shard.Cluster]; member && p.moving {
			kind.limitAvailable(have[i].Object, c.guaranteed())
		}
	}
	d := p.demand
	d.Moves = 0
	shares := changed(p.shares, func(c *Share) {
		least, member := p.minima[c.Name]
		c.Min = least
		if !member {
			c.Max = new(int64(0))
		} else if c.Max != nil {
			c.Min = min(least, *c.Max)
		}
	})
	plan, shards, err := k.Cut(parent, d, shares, have)
	if err != nil {
		return Plan{}, nil, err
	}
	if shards, err = p.mark(kind, parent, shards); err != nil {
		return Plan{}, nil, err
	}
	if numbered, ok := k.(numbering); ok {
		err = numbered.number(parent, shards, have) // also of the shards that mark has added
	}
	return plan, shards, err
}

// mark adds the missing shards of members if minReplicas is zero, since an autoscaler needs a shard to scale from zero.
// While replicas move, it sets AutoscalerMinAnnotation, which keeps the autoscaler of a shard from removing replicas.
func (p *scalingPlan) mark(kind scalable, parent *unstructured.Unstructured, shards []Shard) ([]Shard, error) {
	cut := byCluster(shards)
	for _, cluster := range sorted(p.minima) {
		shard, ok := cut[cluster]
		if !ok && p.min == 0 {
			shard = newShard(parent, cluster)
			if err := kind.setReplicas(shard.Object, 0); err != nil {
				return nil, err
			}
			shards = append(shards, shard)
		}
		if n, _ := kind.count(shard.Object); p.moving && ok && n > 0 {
			annotations := shard.annotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[v1alpha1.AutoscalerMinAnnotation] = strconv.FormatInt(n, 10)
			shard.Object.SetAnnotations(annotations)
		}
	}
	return shards, nil
}

// floorOf returns the value of the AutoscalerMinAnnotation of a shard; zero if it has none.
func floorOf(shard *unstructured.Unstructured) int64 {
	n, err := strconv.ParseInt(shard.GetAnnotations()[v1alpha1.AutoscalerMinAnnotation], 10, 32)
	if err != nil {
		return 0
	}
	return max(0, n)
}

// followAutoscaler writes the replicas that the clusters' autoscalers want into the workload, as the autoscaler of one
// cluster does. It reports whether it wrote; the event of the write requeues the workload.
func (s *Splitter) followAutoscaler(ctx context.Context, k *kindState, workload *unstructured.Unstructured, at situation) (wrote bool, err error) {
	kind, ok := k.kind.(scalable)
	if !ok || at.scaling == nil {
		return false, nil
	}
	plan := at.scaling
	if present, _ := kind.count(workload); present == plan.replicas || plan.paused() || len(plan.minima) == 0 {
		return false, nil
	}
	desired := &unstructured.Unstructured{Object: map[string]any{}}
	desired.SetUID(workload.GetUID())
	desired.SetResourceVersion(workload.GetResourceVersion())
	if err := kind.setReplicas(desired, plan.replicas); err != nil {
		return false, err
	}
	patch, err := json.Marshal(desired.Object)
	if err != nil {
		return false, fmt.Errorf("replicas of %s: %w", workload.GetName(), err)
	}
	key := loop.KeyOf(workload)
	_, err = k.meta(key.Namespace).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: Manager})
	k.writes.add(key, key, written{before: workload.GetResourceVersion()}, err)
	if err != nil {
		return false, fmt.Errorf("set the replicas of %s: %w", key, err)
	}
	return true, nil
}
