// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter/placement"
)

// While the Controller's write of a policy's status is delayed, the policy is deleted, and a new
// policy gets its name. The delayed write fails with a Conflict and does not change the new policy.
func TestAStatusReachesOnlyThePolicyItIsFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("gold", "{clusterSelector: {matchLabels: {tier: gold}}}")
		w.Inject(regiontest.Fault{Verb: "patch", Resource: policies.GroupResource(), Name: "gold", Do: regiontest.Delay(10 * time.Second)})
		w.startPlacement(placement.Options{}, cluster("a", "tier=gold"))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		w.remove(policies, "gold")
		w.policy("gold", "{mode: None}")
		w.rest()
		var codes []int
		for _, r := range w.Requests() {
			if r.Verb == "patch" && r.Name == "gold" {
				codes = append(codes, r.Code)
			}
		}
		require.Equal(t, []int{http.StatusConflict, http.StatusOK}, codes)
	})
}
