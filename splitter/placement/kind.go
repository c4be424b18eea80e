// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	declared "github.com/atoll-dev/atoll/splitter/workload"
)

// kind holds the state of one resource.
type kind struct {
	gvr     schema.GroupVersionResource
	of      *declared.Type // nil if the resource is not divided
	selects *declared.Type // the declaration of the type, if its objects select pods; else nil
	number  int
	divided bool
	objects *loop.Objects
}

// Resources returns the resources of the workloads and of the other objects that a Controller with these Options places,
// without the declared types.
func (opts Options) Resources() (workloads, others []schema.GroupVersionResource) {
	workloads, others = opts.Workloads, opts.Others
	if workloads == nil {
		workloads = []schema.GroupVersionResource{{Group: "apps", Version: "v1", Resource: "deployments"}}
	}
	if others == nil {
		for _, resource := range []string{configMaps, secrets, serviceAccounts, claims, services} {
			others = append(others, schema.GroupVersionResource{Version: "v1", Resource: resource})
		}
		others = append(others, ingresses.WithVersion("v1"), networkPolicies.WithVersion("v1"))
	}
	return workloads, others
}

// kinds returns the kinds of the objects to place, without caches, and all declared types. The kinds include those of the
// objects that follow workloads by a declaration. It fails if a resource is listed twice or a declaration cannot be read.
func (opts Options) kinds() (kinds []*kind, listed []*declared.Type, err error) {
	workloads, others := opts.Resources()
	seen := map[schema.GroupResource]bool{}
	add := func(gvr schema.GroupVersionResource, of *declared.Type) {
		if seen[gvr.GroupResource()] && err == nil {
			err = fmt.Errorf("placement: Options.Workloads, WorkloadTypes and Others have %s twice", gvr.GroupResource())
		}
		seen[gvr.GroupResource()] = true
		kinds = append(kinds, &kind{gvr: gvr, of: of, number: len(kinds), divided: of != nil})
	}
	for _, gvr := range workloads {
		add(gvr, typeOf(gvr))
	}
	listed, misread := compile(opts.WorkloadTypes)
	if misread != nil {
		return nil, nil, misread
	}
	for _, of := range listed {
		if of.Division() != v1alpha1.DivideNone {
			add(of.Resource(), of)
		}
	}
	for _, gvr := range others {
		add(gvr, nil)
	}
	for _, of := range listed {
		if of.SelectsPods() && !seen[of.Resource().GroupResource()] {
			add(of.Resource(), nil)
			kinds[len(kinds)-1].selects = of
		}
	}
	for _, of := range listed {
		for _, gvr := range of.Referenced() {
			if !seen[gvr.GroupResource()] {
				add(gvr, nil)
			}
		}
	}
	return kinds, listed, err
}
