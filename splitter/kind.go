// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind divides one type of workload into shards and combines their status. Its methods are pure: no
// I/O, no clock, arguments not modified. Deployments, StatefulSets, ReplicaSets, ReplicationControllers, Jobs,
// CronJobs, DaemonSets, Declared and ByPaths return implementations. docs/extend.md shows
// how to write one. For other implementations, the room that a shard uses is computed from spec.replicas and spec.template.
type Kind interface {
	// Resource is the type of parents and shards.
	Resource() schema.GroupVersionResource
	// Cut returns the plan of a parent and its desired shards, by cluster. d and shares come from the
	// Placement; Cut sets d.Replicas from the parent and each Share's Present from have. Only the specs
	// and the annotations of the returned shards matter. A cluster without replicas gets no shard, but keeps an existing
	// shard of a Job. Cut fails on a parent that it cannot read. If a parent cannot be divided as
	// requested, Cut comes as near to the request as possible.
	Cut(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) (Plan, []Shard, error)
	// Fold returns the parent's status, computed from that of its shards, without transition times. The
	// Splitter adds those. A shard counts with its last known status, and a shard without a status as
	// not started.
	Fold(parent *unstructured.Unstructured, shards []Shard) (status map[string]any, err error)
}

// Conditioned is a Kind to whose status the Splitter may add ConditionPlaced and ConditionDuplicated.
// Deployments, StatefulSets and Jobs return such a Kind.
type Conditioned interface {
	Kind
	// Conditions returns which conditions the Splitter may add, and their form. It is pure.
	Conditions() Conditions
}

// Conditions describes the status.conditions of a type of workload.
type Conditions struct {
	// Placed and Duplicated permit ConditionPlaced and ConditionDuplicated: API servers and
	// readers of the type accept conditions of these types.
	Placed, Duplicated bool
	// UpdateTime means that conditions have a lastUpdateTime beside lastTransitionTime.
	UpdateTime bool
}

// conditionsOf returns the Conditions of a kind; none for a Kind that is not Conditioned, and for a Follower.
func conditionsOf(kind divider) Conditions {
	if c, ok := kind.(Conditioned); ok {
		return c.Conditions()
	}
	return Conditions{}
}

// Shard is the part of a parent that is assigned to one cluster.
type Shard struct {
	Cluster string
	// Object is nil if the shard does not exist yet.
	Object *unstructured.Unstructured
	// Current is true if the object equals the shard that Cut returns for the present parent.
	Current bool
	// Silent is true if the cluster is unreachable: the object has its last known status.
	Silent bool
	// Lost is true if the cluster is unreachable, or is reachable again but has lost its replicas and may not have new
	// ones yet. It may be missing among the clusters of the Placement.
	Lost bool
}

// exists reports whether the shard exists and is not being deleted.
func (s Shard) exists() bool { return s.Object != nil && s.Object.GetDeletionTimestamp() == nil }

// annotations returns the annotations of the shard; nil if it does not exist yet.
func (s Shard) annotations() map[string]string {
	if s.Object == nil {
		return nil
	}
	return s.Object.GetAnnotations()
}

// observed reports whether the shard's cluster has observed the desired spec.
func (s Shard) observed() bool {
	if !s.Current || !s.exists() {
		return false
	}
	seen, ok := number(s.Object, "status", "observedGeneration")
	return ok && seen >= s.Object.GetGeneration()
}

// number reads an integer field at path. It returns false if the field is absent or not an integer.
func number(obj *unstructured.Unstructured, path ...string) (int64, bool) {
	if obj == nil {
		return 0, false
	}
	v, ok, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
	if !ok || err != nil {
		return 0, false
	}
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == math.Trunc(v)
	}
	return 0, false
}

// numberOr reads an integer field at path. It returns otherwise if the field is absent or not an
// integer.
func numberOr(obj *unstructured.Unstructured, otherwise int64, path ...string) int64 {
	if n, ok := number(obj, path...); ok {
		return n
	}
	return otherwise
}

// newShard returns a shard with the parent's type and a copy of its spec, without metadata. The kind
// then changes the spec.
func newShard(parent *unstructured.Unstructured, cluster string) Shard {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": parent.GetAPIVersion(), "kind": parent.GetKind()}}
	for name, v := range parent.Object {
		switch name {
		case "apiVersion", "kind", "metadata", "status":
		default:
			obj.Object[name] = v
		}
	}
	obj = obj.DeepCopy()
	// With a creationTimestamp of null, each write of the template would count as a change.
	unstructured.RemoveNestedField(obj.Object, "spec", "template", "metadata", "creationTimestamp")
	return Shard{Cluster: cluster, Object: obj}
}

// withPresent returns a copy of the shares. It sets Present of each cluster from the map present, and
// raises each Capacity to the number of present replicas. So a cluster that loses nodes keeps its
// replicas and gets no new ones: replicas that left would have to move back as soon as the nodes
// return.
func withPresent(shares []Share, present map[string]int64) []Share {
	shares = slices.Clone(shares)
	for i := range shares {
		s, stays := &shares[i], int64(0)
		if s.Group {
			s.Members = withPresent(s.Members, present)
			for _, m := range clusters(s.Members) {
				stays = plus(stays, max(0, m.within(m.Present))) // a draining member (Max 0) keeps no replicas
			}
		} else {
			s.Present = present[s.Name]
			stays = s.Present
		}
		if c := s.Capacity; c != nil && *c >= 0 && *c < stays {
			s.Capacity = &stays
		}
	}
	return shares
}

func byCluster(shards []Shard) map[string]Shard {
	m := make(map[string]Shard, len(shards))
	for _, s := range shards {
		m[s.Cluster] = s
	}
	return m
}

// counter is a status field of the parent that holds the sum of the same field of all shards.
type counter struct {
	path     []string
	required bool // written even if zero
}

func counters(required []string, optional ...string) []counter {
	var cs []counter
	for _, f := range required {
		cs = append(cs, counter{[]string{"status", f}, true})
	}
	for _, f := range optional {
		cs = append(cs, counter{[]string{"status", f}, false})
	}
	return cs
}

// add writes the sums of the shards' counters to status. add omits an optional counter whose sum is
// zero, as API servers do, unless the parent's status has another value in this field.
func add(status map[string]any, cs []counter, parent *unstructured.Unstructured, shards []Shard) error {
	for _, c := range cs {
		var n int64
		for _, s := range shards {
			n += numberOr(s.Object, 0, c.path...)
		}
		if n != 0 || c.required || numberOr(parent, 0, c.path...) != 0 {
			if err := unstructured.SetNestedField(status, n, c.path[1:]...); err != nil {
				return err
			}
		}
	}
	return nil
}

// observe sets observedGeneration in status. If every shard has observed its own generation, it sets
// the parent's generation, otherwise the previous value. A previous value above the parent's generation
// comes from another controller: then the present generation counts as not observed.
func observe(status map[string]any, parent *unstructured.Unstructured, shards []Shard) {
	all := !slices.ContainsFunc(shards, func(s Shard) bool { return !s.observed() })
	if all && parent.GetGeneration() > 0 {
		status["observedGeneration"] = parent.GetGeneration()
	} else if before, ok := number(parent, "status", "observedGeneration"); ok {
		if before > parent.GetGeneration() {
			before = max(0, parent.GetGeneration()-1)
		}
		status["observedGeneration"] = before
	}
}

// foreign holds the prefixes of labels and annotations by which tools mark the objects that they own.
// Shards do not get labels and annotations with these prefixes.
var foreign = []string{
	"argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "meta.helm.sh/", "fleet.cattle.io/",
	"objectset.rio.cattle.io/", "config.k8s.io/", "applyset.kubernetes.io/", "kubectl.kubernetes.io/", "app.kubernetes.io/instance",
	"deployment.kubernetes.io/", "splitter.atoll.dev/", "state.workload.kcp.io/", "status.workload.kcp.io/", "workloads.kcp.io/",
	"syncer.atoll.dev/", "synced.syncer.atoll.dev/", "unscheduled.syncer.atoll.dev/", // each describes one object
}

// inherited returns those of a parent's labels or annotations that its shards get.
func inherited(of map[string]string) map[string]string {
	of = maps.Clone(of)
	maps.DeleteFunc(of, func(k, _ string) bool {
		return slices.ContainsFunc(foreign, func(prefix string) bool { return strings.HasPrefix(k, prefix) })
	})
	return of
}
