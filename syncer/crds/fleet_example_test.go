// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"context"
	"fmt"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/crds"
)

// A Fleet runs beside the Targets of an upstream and keeps their types in step.
func ExampleNewFleet() {
	upstream := regiontest.NewServer(regiontest.Options{})
	defer upstream.Close()
	up, err := region.APIFor(upstream.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	targets, err := syncer.NewTargets(up, syncer.TargetsOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fleet, err := crds.NewFleet(up, targets, crds.Options{Policy: crds.Policy{{Group: "example.com", Resource: "*", Direction: crds.Both}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	states, err := fleet.Sync(context.Background()) // or fleet.Start beside targets.Start, which go on
	fmt.Println(len(states), err)
	// Output: 0 <nil>
}
