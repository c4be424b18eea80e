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

// Kind knows how one kind of workload is cut and put together again. Its methods are pure: no I/O, no clock, arguments not
// modified. Deployments, StatefulSets, Jobs, CronJobs, DaemonSets and ByPaths return implementations.
type Kind interface {
	// Resource is what parents and shards are.
	Resource() schema.GroupVersionResource
	// Cut says which shards a parent shall have. d and shares are what the placement wants: Replicas of the one and Present
	// of the others are filled in here, from the parent and from the shards that are there. Of the shards that it returns,
	// by cluster, only the specs count; clusters that are to have none are left out. It fails on a parent that it cannot
	// read; a parent that it can only cut worse than asked is cut so.
	Cut(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) (Plan, []Shard, error)
	// Fold returns the parent's status, without times of transitions, which the Splitter adds. What a shard says counts as
	// long as it is the last that is known; a shard without a status counts as one that has not begun.
	Fold(parent *unstructured.Unstructured, shards []Shard) (status map[string]any, err error)
}

// Shard is the part of a parent that one cluster has.
type Shard struct {
	Cluster string
	// Object is nil if there is none yet.
	Object *unstructured.Unstructured
	// Current says that the object is what was cut from the parent as it is now.
	Current bool
	// Silent says that the cluster does not answer: what the object says is the last known.
	Silent bool
}

// observed says whether the shard's cluster has seen what is wanted of it now.
func (s Shard) observed() bool {
	if !s.Current || s.Object == nil || s.Object.GetDeletionTimestamp() != nil {
		return false
	}
	seen, ok := number(s.Object, "status", "observedGeneration")
	return ok && seen >= s.Object.GetGeneration()
}

// number reads a whole number.
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

// numberOr reads a whole number that has a default.
func numberOr(obj *unstructured.Unstructured, otherwise int64, path ...string) int64 {
	if n, ok := number(obj, path...); ok {
		return n
	}
	return otherwise
}

// cutting is a shard without its metadata: the type and the spec of the parent, for the kind to change.
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
	// A creation time of null would make each write of the template a change of it.
	unstructured.RemoveNestedField(obj.Object, "spec", "template", "metadata", "creationTimestamp")
	return Shard{Cluster: cluster, Object: obj}
}

// with returns the shares with what is present, by cluster. What is present has room: nodes come and go, and a cluster that
// has fewer for a while gets nothing more, but loses nothing that it would get back with them.
func with(shares []Share, present map[string]int64) []Share {
	shares = slices.Clone(shares)
	for i := range shares {
		s, stays := &shares[i], int64(0)
		if s.Group {
			s.Members = with(s.Members, present)
			for _, m := range clusters(s.Members) {
				stays = plus(stays, max(0, m.within(m.Present))) // what drains leaves no room behind
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

// counter is a field of the status that is the sum of the shards'.
type counter struct {
	path     []string
	required bool // written even if it is zero
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

// add sums up the counters of shards in a status. An API server leaves out optional ones that are zero; they are written once
// where the parent has something else, as another controller left it.
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

// observe sets observedGeneration: the parent's if every shard has seen its own part of it, else what it was. One
// that the parent has not reached yet was written by another controller: then the present one counts as not observed.
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

// few is how many clusters a message names. Those of hundreds would make the parent too large, and nobody reads them.
const few = 10

// brief joins what is said of clusters, or the first few of it.
func brief(all []string, separator string) string {
	if len(all) > few {
		return strings.Join(all[:few], separator) + fmt.Sprintf(" and %d more", len(all)-few)
	}
	return strings.Join(all, separator)
}

// foreign are the prefixes of labels and annotations by which tools know what they own; a shard is not theirs.
var foreign = []string{
	"argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "meta.helm.sh/", "fleet.cattle.io/",
	"objectset.rio.cattle.io/", "config.k8s.io/", "applyset.kubernetes.io/", "kubectl.kubernetes.io/", "app.kubernetes.io/instance",
	"deployment.kubernetes.io/", "splitter.atoll.dev/", "state.workload.kcp.io/", "status.workload.kcp.io/", "workloads.kcp.io/",
	"syncer.atoll.dev/", "synced.syncer.atoll.dev/", "unscheduled.syncer.atoll.dev/", // what syncers say of one object
}

// own returns the labels or annotations that pass to shards.
func own(of map[string]string) map[string]string {
	of = maps.Clone(of)
	maps.DeleteFunc(of, func(k, _ string) bool {
		return slices.ContainsFunc(foreign, func(prefix string) bool { return strings.HasPrefix(k, prefix) })
	})
	return of
}
