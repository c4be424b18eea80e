// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"context"
	"fmt"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer/crds"
	"github.com/atoll-dev/atoll/syncer/targets"
)

// A Fleet runs beside a targets.Controller, and syncs the definitions of types between the upstream and that
// Controller's clusters.
func ExampleNewFleet() {
	upstream := regiontest.NewServer(regiontest.Options{})
	defer upstream.Close()
	up, err := region.APIFor(upstream.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	clusters, err := targets.New(up, targets.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fleet, err := crds.NewFleet(up, clusters, crds.Options{Policy: crds.Policy{{Group: "example.com", Resource: "*", Direction: crds.Both}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	states, err := fleet.Sync(context.Background()) // fleet.Start, beside clusters.Start, repeats this until its context ends
	fmt.Println(len(states), err)
	// Output: 0 <nil>
}
