// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// facts are the input of one decision about an object.
type facts struct {
	obj     *unstructured.Unstructured
	before  state
	placed  bool // the object has the placement annotation
	divided bool // a Splitter divides the object

	clusters []splitter.Cluster
	policy   *policy // nil if no policy selects the object

	occupied []string // clusters that may have the object, or a shard of it
	follows  []string // clusters of the workloads that refer to the object
	fresh    bool     // all workloads that may refer to the object are known

	// held reports whether the object stays in a cluster that it has to leave.
	held func(cluster string) bool
}

// decide returns the desired state of an object. ok is false if the object is not to be placed. decide calls f.held
// for the clusters that the object has to leave, and is pure otherwise.
func (f facts) decide() (after state, ok bool, err error) {
	after = state{by: f.before.by, division: f.before.division}
	follows, held := f.follows, f.held
	var wanted []string
	var none bool // the desired state is no cluster at all
	switch {
	case f.policy != nil && f.policy.spec.Suspend:
		return state{}, false, nil
	case f.policy != nil:
		if wanted, err = f.chosen(); err != nil {
			return state{}, false, fmt.Errorf("placement: %s: %w", f.policy.name, err)
		}
		after.by, none = f.policy.name, f.policy.spec.Mode == v1alpha1.PlacementNone
		if none {
			follows = nil
		}
	case f.placed && f.before.by != v1alpha1.PlacedByReference:
		wanted = f.before.stays() // an object whose policy was deleted stays in its clusters
		none = len(wanted) == 0
	case len(follows) > 0 || f.placed:
		after.by, none = v1alpha1.PlacedByReference, f.fresh
	default:
		return state{}, false, nil
	}
	wanted = union(wanted, follows)
	if !f.fresh {
		// Some workloads are unknown: the object stays in its clusters, also in those that it is leaving.
		wanted, held = union(wanted, f.before.stays()), func(string) bool { return true }
	}
	if !f.divided {
		wanted = slices.DeleteFunc(wanted, f.labeledByOther)
	}
	after.clusters, after.leaving = next(wanted, f.occupied, none, held)
	switch {
	case !f.divided:
		after.division = nil
	case f.policy != nil:
		after.division = newDivision(f.policy.spec, after.clusters)
	}
	return after, true, nil
}

// chosen returns the clusters that the policy chooses. Clusters that have the object are preferred.
func (f facts) chosen() ([]string, error) {
	return Choose(f.policy.spec, f.obj.GetUID(), f.clusters, f.present())
}

// present returns the clusters of the object, without those that it is leaving.
func (f facts) present() []string {
	if !f.placed {
		return f.occupied // so far a Splitter without placement may have divided the object
	}
	return f.before.stays()
}

// labeledByOther reports whether another client has set the label that places the object in a cluster.
func (f facts) labeledByOther(cluster string) bool {
	_, labeled := f.obj.GetLabels()[syncerv1alpha1.StateLabelPrefix+cluster]
	return labeled && !slices.Contains(f.before.clusters, cluster)
}
