// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter"
)

// Observed is the content of an API server that Preview reads. Preview changes none of it.
type Observed struct {
	// Clusters are the clusters with their States, as splitter.ReadClusters returns them.
	Clusters []splitter.Cluster
	// Now is the time of the observation, as given to splitter.ReadClusters. It decides which taints NoExecute drain
	// their cluster. With the zero time, only a taint without TimeAdded that is not tolerated drains its cluster.
	Now time.Time
	// Policies are the PlacementPolicies and ClusterPlacementPolicies.
	Policies []*unstructured.Unstructured
	// Namespaces are the labels of the namespaces, by name. A missing namespace has no labels.
	Namespaces map[string]map[string]string
	// Objects are the objects by resource, workloads with their shards. A resource of the Options without an entry is
	// unknown: no object leaves a cluster in which an object of this resource may need it.
	Objects map[schema.GroupVersionResource][]*unstructured.Unstructured
}

// Move is a change of one object that a policy causes.
type Move struct {
	Resource schema.GroupResource
	Object   types.NamespacedName
	// From are the clusters of the object now, without those that it is leaving. To are its clusters after the move. Both
	// are sorted.
	From, To []string
	// By names the policy that places the object then. It is the value of PlacedByAnnotation.
	By string
	// Redivided is true if the mode, the shares or the groups of a workload change: replicas may move between the
	// clusters that the workload keeps.
	Redivided bool
}

// Preview returns the moves that a PlacementPolicy or ClusterPlacementPolicy would cause, sorted by resource, namespace
// and name. The policy replaces the one in o with the same namespace and name. Preview is pure and decides as a
// Controller with these Options does. It omits moves that a Controller makes without the policy. It fails if the
// policy cannot be read. If another policy cannot be read, the objects that it may select stay: Preview returns the
// other moves together with the error.
func Preview(o Observed, policy *unstructured.Unstructured, opts Options) ([]Move, error) {
	key := loop.KeyOf(policy)
	if q := readPolicy(placedBy(key), policy); q.err != nil {
		return nil, fmt.Errorf("placement: policy %s: %w", q.name, q.err)
	}
	kinds, _, err := opts.kinds()
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(slices.Clone(o.Policies), func(p *unstructured.Unstructured) bool { return loop.KeyOf(p) == key })
	now, err := o.outlook(kinds, o.Policies, opts)
	if err != nil {
		return nil, err
	}
	then, err := o.outlook(kinds, append(others, policy), opts)
	if err != nil {
		return nil, err
	}
	var moves []Move
	for at, d := range then.decisions {
		if d.same(now.decisions[at]) {
			continue
		}
		m := Move{
			Resource: kinds[at.kind].gvr.GroupResource(), Object: at.key, From: d.facts.present(), To: d.after.clusters, By: d.after.by,
			Redivided: d.facts.placed && !d.facts.before.division.same(d.after.division),
		}
		if m.Redivided || !slices.Equal(m.From, m.To) {
			moves = append(moves, m)
		}
	}
	slices.SortFunc(moves, func(a, b Move) int {
		return cmp.Or(cmp.Compare(a.Resource.String(), b.Resource.String()), cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	return moves, then.err()
}

// outlook has the decisions about all objects, by the policies of one list.
type outlook struct {
	decisions map[objectID]decision
	problems  map[string]error // by text
}

// decision is the state that one object is to have once it has left all clusters that it has to leave.
type decision struct {
	facts facts
	after state
}

func (d decision) same(o decision) bool {
	return d.after.by == o.after.by && slices.Equal(d.after.clusters, o.after.clusters) && d.after.division.same(o.after.division)
}

// same reports whether two divisions give the same clusters the same shares.
func (d *division) same(o *division) bool {
	a, b := *cmp.Or(d, &division{}), *cmp.Or(o, &division{})
	return a.Mode == b.Mode && slices.Equal(a.SpreadBy, b.SpreadBy) &&
		(len(a.Clusters) == 0 && len(b.Clusters) == 0 || reflect.DeepEqual(a.Clusters, b.Clusters))
}

// outlook decides about all objects: first about the workloads, then about the objects that follow them.
func (o Observed) outlook(kinds []*kind, list []*unstructured.Unstructured, opts Options) (outlook, error) {
	ps, err := newPolicies(opts.Default)
	if err != nil {
		return outlook{}, err
	}
	ps.wide.listed = map[string]labels.Set{}
	for name, of := range o.Namespaces {
		ps.wide.listed[name] = of
	}
	for _, p := range list {
		ps.set(loop.KeyOf(p), p)
	}
	x, all := newIndex(), outlook{map[objectID]decision{}, map[string]error{}}
	o.each(kinds, func(k *kind, at objectID, obj *unstructured.Unstructured) {
		if k.divided {
			part, is := shardOf(obj)
			x.setShard(at, part, is)
		} else {
			x.setRoute(k.gvr.GroupResource(), at.key, obj)
		}
	})
	for _, divided := range []bool{true, false} {
		o.each(kinds, func(k *kind, at objectID, obj *unstructured.Unstructured) {
			if k.divided != divided {
				return
			}
			d := o.decide(ps, x, kinds, k, obj, all.problems)
			if divided {
				if _, isShard := shardOf(obj); !isShard {
					x.setWorkload(at, workloadIn(d.after, k.of, obj))
				}
			}
			if obj.GetDeletionTimestamp() == nil && !foreign(obj, k.divided) {
				all.decisions[at] = d
			}
		})
	}
	return all, nil
}

// each calls f for all objects of the kinds.
func (o Observed) each(kinds []*kind, f func(*kind, objectID, *unstructured.Unstructured)) {
	for _, k := range kinds {
		for _, obj := range o.Objects[k.gvr] {
			f(k, objectID{k.number, loop.KeyOf(obj)}, obj)
		}
	}
}

// decide returns the decision about one object, or its present state if nothing is decided.
func (o Observed) decide(ps *policies, x *index, kinds []*kind, k *kind, obj *unstructured.Unstructured, problems map[string]error) decision {
	f := facts{obj: obj, divided: k.divided, clusters: o.Clusters, fresh: true, held: func(string) bool { return false }}
	f.before, f.placed, _ = read(obj)
	f.occupied = f.before.clusters
	if k.divided {
		f.occupied = union(f.before.clusters, x.clustersOf(obj.GetUID()))
	} else {
		f.follows = x.follows(k, obj)
		f.fresh = !slices.ContainsFunc(kinds, func(other *kind) bool { return other.leads(k) && o.Objects[other.gvr] == nil })
	}
	stay := decision{f, state{clusters: f.present(), by: f.before.by, division: f.before.division}}
	if obj.GetDeletionTimestamp() != nil || foreign(obj, k.divided) {
		return stay
	}
	p, selected, err := ps.decides(obj, k.divided)
	if selected {
		f.policy = &p
		f.clusters, _ = Tolerate(p.spec.Tolerations, o.Clusters, o.Now)
	}
	var after state
	var ok bool
	if err == nil {
		after, ok, err = f.decide()
	}
	if err != nil {
		problems[err.Error()] = err
	}
	if !ok || err != nil {
		return stay
	}
	return decision{f, after}
}

// err joins the problems, sorted by their text.
func (o outlook) err() error {
	var list []error
	for _, text := range slices.SortedFunc(maps.Keys(o.problems), strings.Compare) {
		list = append(list, o.problems[text])
	}
	return errors.Join(list...)
}
