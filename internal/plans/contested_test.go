// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"slices"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

// contested is a scenario in which three peers claim a region and keep their claims. The faults
// decide which peer holds the region at the end. In any case exactly one peer holds it, and all
// claims name that peer.
func contested() perturb.Scenario {
	types := map[string]func() (*regiontest.Definitions, error){"plane": nil}
	manifests := map[string][]string{"plane": {kubecarrier}}
	for _, peer := range []string{"ap", "eu", "us"} {
		types[peer], manifests[peer] = claimTypes, []string{loodse}
	}
	return perturb.Scenario{
		Servers: serve(types, manifests),
		Loops:   []perturb.Loop{{Name: "arbiter", Run: arbiter("ap", "eu", "us")}},
		Script: []perturb.Step{
			put("us claims a", "us", claimOfA),
			put("ap claims a", "ap", claimOfA),
			put("eu makes the cluster a", "eu", clusterA),
			deletes("us gives a up", "us", claimOfA),
			put("us claims a again", "us", claimOfA),
		},
		Differ: slices.Concat(claimsDiffer, []perturb.Field{
			{Resource: "regionclaims.kubecarrier.io", Path: "status"},
			{Resource: "serviceclusters.kubecarrier.io", Path: "status"},
			{Resource: "leases.coordination.k8s.io", Path: "spec.holderIdentity"},
			{Resource: "leases.coordination.k8s.io", Path: "metadata.annotations[claim.atoll.dev/uid]"},
		}),
		Holds: oneHolder("ap", "eu", "us"),
	}
}
