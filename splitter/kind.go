// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind divides one type of workload into shards and folds their status. Its methods are pure: no
// I/O, no clock, arguments not modified. Deployments, StatefulSets, Jobs, CronJobs, DaemonSets
// and ByPaths return implementations.
type Kind interface {
	// Resource is the type of parents and shards.
	Resource() schema.GroupVersionResource
	// Cut returns the plan of a parent and its desired shards, by cluster. d and shares are the
	// placement's; Cut fills in d.Replicas from the parent and Present from have. Only the specs
	// of the returned shards count, and clusters without replicas are left out. It fails on a
	// parent that it cannot read; a parent that cannot be divided as asked is divided as well as
	// possible.
	Cut(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) (Plan, []Shard, error)
	// Fold returns the parent's status without transition times, which the Splitter adds. The
	// last known status of a shard counts; a shard without a status counts as not started.
	Fold(parent *unstructured.Unstructured, shards []Shard) (status map[string]any, err error)
}

// Conditioned is a Kind whose status has conditions to which the Splitter may add its own. Deployments,
// StatefulSets and Jobs return such a Kind.
type Conditioned interface {
	Kind
	// Conditions returns which conditions the Splitter adds, and their form. It is pure.
	Conditions() Conditions
}

// Conditions describe the status.conditions of a type of workload.
type Conditions struct {
	// Placed and Duplicated permit ConditionPlaced and ConditionDuplicated: API servers and
	// readers of the type accept conditions of these types.
	Placed, Duplicated bool
	// UpdateTime means that conditions have a lastUpdateTime beside lastTransitionTime.
	UpdateTime bool
}

// conditionsOf returns the Conditions of a kind; none for a Kind that is not Conditioned.
func conditionsOf(kind Kind) Conditions {
	if c, ok := kind.(Conditioned); ok {
		return c.Conditions()
	}
	return Conditions{}
}

// Shard is the part of a parent that one cluster has.
type Shard struct {
	Cluster string
	// Object is nil if the shard does not exist yet.
	Object *unstructured.Unstructured
	// Current is true if the object equals the cut of the present parent.
	Current bool
	// Silent is true if the cluster is unreachable: the object has its last known status.
	Silent bool
}

// lasts reports whether the shard exists and is not being deleted.
func (s Shard) lasts() bool { return s.Object != nil && s.Object.GetDeletionTimestamp() == nil }

// observed reports whether the shard's cluster has observed the desired spec.
func (s Shard) observed() bool {
	if !s.Current || !s.lasts() {
		return false
	}
	seen, ok := number(s.Object, "status", "observedGeneration")
	return ok && seen >= s.Object.GetGeneration()
}

// number reads a whole number at path.
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

// numberOr reads a whole number at path, with a default.
func numberOr(obj *unstructured.Unstructured, otherwise int64, path ...string) int64 {
	if n, ok := number(obj, path...); ok {
		return n
	}
	return otherwise
}

// cutting returns a shard without metadata: the parent's type and spec, for the kind to change.
func cutting(parent *unstructured.Unstructured, cluster string) Shard {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": parent.GetAPIVersion(), "kind": parent.GetKind()}}
	for name, v := range parent.Object {
		switch name {
		case "apiVersion", "kind", "metadata", "status":
		default:
			obj.Object[name] = v
		}
	}
	obj = obj.DeepCopy()
	// A creationTimestamp of null would make each write of the template a change.
	unstructured.RemoveNestedField(obj.Object, "spec", "template", "metadata", "creationTimestamp")
	return Shard{Cluster: cluster, Object: obj}
}

// with returns the shares with Present filled in, by cluster, and with at least that Capacity. A
// cluster that loses nodes gets no new replicas but keeps its own: it would get them back with
// the nodes.
func with(shares []Share, present map[string]int64) []Share {
	shares = slices.Clone(shares)
	for i := range shares {
		s, stays := &shares[i], int64(0)
		if s.Group {
			s.Members = with(s.Members, present)
			for _, m := range clusters(s.Members) {
				stays = plus(stays, max(0, m.within(m.Present))) // a member that drains (Max 0) leaves no room
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

// counter is a status field that sums the shards'.
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

// add writes the sums of the shards' counters to status. An API server omits optional counters of
// zero; add writes such a zero once if the parent has another value, from an earlier controller.
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

// observe sets observedGeneration: the parent's generation if every shard has observed its own,
// else the value before. A value above the parent's generation is another controller's: then the
// present generation counts as not observed.
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

// few is how many clusters a message names. Hundreds of names would make the parent too large.
const few = 10

// brief joins messages about clusters, or the first few of them.
func brief(all []string, separator string) string {
	if len(all) > few {
		return strings.Join(all[:few], separator) + fmt.Sprintf(" and %d more", len(all)-few)
	}
	return strings.Join(all, separator)
}

// foreign has prefixes of labels and annotations by which tools mark the objects that they own.
// Shards do not get them.
var foreign = []string{
	"argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "meta.helm.sh/", "fleet.cattle.io/",
	"objectset.rio.cattle.io/", "config.k8s.io/", "applyset.kubernetes.io/", "kubectl.kubernetes.io/", "app.kubernetes.io/instance",
	"deployment.kubernetes.io/", "splitter.atoll.dev/", "state.workload.kcp.io/", "status.workload.kcp.io/", "workloads.kcp.io/",
	"syncer.atoll.dev/", "synced.syncer.atoll.dev/", "unscheduled.syncer.atoll.dev/", // syncers write these about one object
}

// own returns the labels or annotations that shards get from their parent.
func own(of map[string]string) map[string]string {
	of = maps.Clone(of)
	maps.DeleteFunc(of, func(k, _ string) bool {
		return slices.ContainsFunc(foreign, func(prefix string) bool { return strings.HasPrefix(k, prefix) })
	})
	return of
}
