// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer"
)

// asRequests lists the types whose objects are requests, which are never synced. named lists the
// types that need no Power and are synced only if Options.Types selects them. harmless lists the
// other types that need no Power.
const (
	asRequests = "bindings componentstatuses selfsubjectreviews.authentication.k8s.io tokenreviews.authentication.k8s.io localsubjectaccessreviews.authorization.k8s.io " +
		"selfsubjectaccessreviews.authorization.k8s.io selfsubjectrulesreviews.authorization.k8s.io subjectaccessreviews.authorization.k8s.io"
	named    = "events events.events.k8s.io pods"
	harmless = "configmaps limitranges persistentvolumeclaims podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services " +
		"daemonsets.apps deployments.apps replicasets.apps statefulsets.apps horizontalpodautoscalers.autoscaling cronjobs.batch jobs.batch " +
		"ingresses.networking.k8s.io networkpolicies.networking.k8s.io poddisruptionbudgets.policy " +
		"resourceclaims.resource.k8s.io resourceclaimtemplates.resource.k8s.io podgroups.scheduling.k8s.io workloads.scheduling.k8s.io"
)

// Every type that a server serves, also in versions that are off by default, is classified: it is a
// request, needs a Power, or is listed in named or harmless. Every Power is needed by a served
// type.
func TestServedTypesAreClassified(t *testing.T) {
	all := planetest.NewAll(t, plane.Options{Name: "all", APIServerFlags: []string{"--runtime-config=api/all=true", "--feature-gates=AllAlpha=true,AllBeta=true"}})[0]
	api, err := region.APIFor(all.Config())
	require.NoError(t, err)
	_, lists, err := api.Discovery().ServerGroupsAndResources()
	require.NoError(t, err)
	free := map[string]bool{}
	powers := map[syncer.Power]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") {
				continue
			}
			gr := schema.GroupResource{Group: gv.Group, Resource: r.Name}
			err := syncer.CheckTypes(syncer.Powers(), gr)
			switch {
			case slices.Contains(strings.Fields(asRequests), gr.String()):
				require.ErrorContains(t, err, "is never synced: it is a request")
				continue
			case err != nil:
				require.NoError(t, err, "%s: add it to the table of package syncer", list.GroupVersion)
			}
			if syncer.CheckTypes(nil, gr) != nil {
				require.False(t, syncer.DefaultTypes(gr), gr)
				powers[powerOf(gr)] = true
				continue
			}
			require.Equal(t, !slices.Contains(strings.Fields(named), gr.String()), syncer.DefaultTypes(gr), gr)
			free[gr.String()] = true
		}
	}
	for name := range free {
		require.Contains(t, strings.Fields(named+" "+harmless), name, "it is synced without a permit")
	}
	for _, p := range syncer.Powers() {
		require.True(t, powers[p], "nothing is served that needs %s", p)
	}
}

// powerOf returns the only Power that a type needs.
func powerOf(gr schema.GroupResource) syncer.Power {
	for _, p := range syncer.Powers() {
		if syncer.CheckTypes([]syncer.Power{p}, gr) == nil {
			return p
		}
	}
	return ""
}
