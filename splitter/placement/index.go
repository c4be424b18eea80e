// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/selector"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	declared "github.com/atoll-dev/atoll/splitter/workload"
)

// objectID identifies an object by its kind and key.
type objectID struct {
	kind int
	key  types.NamespacedName
}

// workload holds the references of a divided object to other objects.
type workload struct {
	in       string // the namespace
	identity identity
	by       string // the policy
	refs     map[reference]bool
	pods     []map[string]string // the labels of each kind of pods
	clusters []string            // the clusters of its dependents; empty if the policy does not place dependents
}

// identity is the kind and the name of a workload, by which other objects of its namespace refer to it.
type identity struct {
	kind schema.GroupKind
	name string
}

func (w workload) same(o workload) bool {
	return w.by == o.by && maps.Equal(w.refs, o.refs) && slices.EqualFunc(w.pods, o.pods, maps.Equal) && slices.Equal(w.clusters, o.clusters)
}

// runs reports whether the workload has pods whose labels match.
func (w workload) runs(match func(map[string]string) bool) bool {
	return slices.ContainsFunc(w.pods, match)
}

func newWorkload(of *declared.Type, obj *unstructured.Unstructured) workload {
	s, _, _ := read(obj)
	return workloadIn(s, of, obj)
}

// workloadIn returns the references of a workload that has the state s.
func workloadIn(s state, of *declared.Type, obj *unstructured.Unstructured) workload {
	if s.division == nil || !s.division.Dependents {
		return workload{}
	}
	is := identity{obj.GroupVersionKind().GroupKind(), obj.GetName()}
	return workload{in: obj.GetNamespace(), identity: is, by: s.by, refs: references(of, obj), pods: of.PodLabels(obj), clusters: s.clusters}
}

// index maps namespaces to their workloads, and parents to the clusters of their shards.
type index struct {
	mu         sync.Mutex
	namespaces map[string]map[objectID]workload
	shards     map[objectID]shard
	parents    map[types.UID]map[objectID]string // the clusters of shards, by the UID of their parent
	routes     routes
	pulls      map[types.NamespacedName][]string // the Secrets of ServiceAccounts, for pulling images
}

// shard holds the parent and the cluster of a shard.
type shard struct {
	parent  types.UID
	name    string // of the parent
	cluster string
}

func newIndex() *index {
	return &index{
		namespaces: map[string]map[objectID]workload{}, shards: map[objectID]shard{}, parents: map[types.UID]map[objectID]string{},
		routes: routes{map[types.NamespacedName]map[string]string{}, map[types.NamespacedName]ingress{}},
		pulls:  map[types.NamespacedName][]string{},
	}
}

// shardOf reads the parent and cluster of a shard. It returns false if the object is not a shard. A
// copy of a shard that has another name is not a shard, even with the shard's labels.
func shardOf(obj *unstructured.Unstructured) (shard, bool) {
	annotations := obj.GetAnnotations()
	s := shard{types.UID(obj.GetLabels()[v1alpha1.ParentLabel]), annotations[v1alpha1.ParentAnnotation], annotations[v1alpha1.ClusterAnnotation]}
	return s, s.parent != "" && obj.GetName() == splitter.ShardName(s.name, s.cluster)
}

// setShard records whether the object with the ID at is a shard and, if it is one, its parent and
// cluster. It returns the earlier record.
func (x *index) setShard(at objectID, now shard, is bool) (before shard) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before, was := x.shards[at]
	if was {
		delete(x.shards, at)
		delete(x.parents[before.parent], at)
		if len(x.parents[before.parent]) == 0 {
			delete(x.parents, before.parent)
		}
	}
	if is {
		x.shards[at] = now
		if x.parents[now.parent] == nil {
			x.parents[now.parent] = map[objectID]string{}
		}
		x.parents[now.parent][at] = now.cluster
	}
	return before
}

// clustersOf returns the clusters in which a parent has shards.
func (x *index) clustersOf(parent types.UID) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	names := slices.Sorted(maps.Values(x.parents[parent]))
	return slices.Compact(names)
}

// setRoute records a Service, a ServiceAccount or an Ingress.
func (x *index) setRoute(resource schema.GroupResource, key types.NamespacedName, obj *unstructured.Unstructured) {
	switch resource {
	case schema.GroupResource{Resource: services}:
		x.setService(key, obj)
	case schema.GroupResource{Resource: serviceAccounts}:
		x.setAccount(key, obj)
	case ingresses:
		x.setIngress(key, obj)
	}
}

// setWorkload records a workload and returns the earlier record.
func (x *index) setWorkload(at objectID, now workload) (before workload) {
	x.mu.Lock()
	defer x.mu.Unlock()
	in := x.namespaces[at.key.Namespace]
	before = in[at]
	if len(now.clusters) == 0 {
		delete(in, at)
		if len(in) == 0 {
			delete(x.namespaces, at.key.Namespace)
		}
		return before
	}
	if in == nil {
		in = map[objectID]workload{}
		x.namespaces[at.key.Namespace] = in
	}
	in[at] = now
	return before
}

// placedBy returns the workloads that a policy places together with their dependents.
func (x *index) placedBy(policy types.NamespacedName) (list []workload) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for namespace, in := range x.namespaces {
		if policy.Namespace != "" && namespace != policy.Namespace {
			continue
		}
		for _, w := range in {
			if w.by == placedBy(policy) {
				list = append(list, w)
			}
		}
	}
	return list
}

// follows returns the clusters of all workloads that an object follows: they or their ServiceAccounts refer to it, or it
// selects their pods.
func (x *index) follows(k *kind, obj *unstructured.Unstructured) (clusters []string) {
	resource, leads := k.gvr.GroupResource(), k.leadersOf(obj)
	x.mu.Lock()
	defer x.mu.Unlock()
	namespace := obj.GetNamespace()
	if resource == ingresses {
		clusters = x.behind(namespace, newIngress(obj))
	}
	for _, w := range x.namespaces[namespace] {
		if leads(w) {
			clusters = append(clusters, w.clusters...)
		}
	}
	if resource == (schema.GroupResource{Resource: secrets}) {
		clusters = append(clusters, x.pulledBy(types.NamespacedName{Namespace: namespace, Name: obj.GetName()})...)
		for key, i := range x.routes.ingresses {
			if key.Namespace == namespace && slices.Contains(i.secrets, obj.GetName()) {
				clusters = append(clusters, x.behind(namespace, i)...)
			}
		}
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}

// leadersOf returns a func that reports whether obj follows a workload: the workload or its pods refer to obj, or obj
// selects these pods.
func (k *kind) leadersOf(obj *unstructured.Unstructured) func(workload) bool {
	resource := k.gvr.GroupResource()
	ref := reference{resource.String(), obj.GetName()}
	selects := labels.Nothing()
	switch {
	case k.selects != nil:
		if content := k.selects.PodSelector(obj); content != nil {
			selects = selector.Read(content)
		}
	case resource == networkPolicies:
		selects = podSelector(obj)
	case resource == schema.GroupResource{Resource: services}:
		of := serviceSelector(obj)
		return func(w workload) bool {
			return w.refs[ref] || w.runs(func(pods map[string]string) bool { return matches(of, pods) })
		}
	}
	return func(w workload) bool { return w.refs[ref] || w.runs(selected(selects)) }
}

// selected returns a func that reports whether a selector matches the labels of pods.
func selected(selector labels.Selector) func(map[string]string) bool {
	return func(pods map[string]string) bool { return selector.Matches(labels.Set(pods)) }
}
