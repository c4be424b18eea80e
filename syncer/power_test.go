// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/targets"
)

// powerful has, for each Power, the types of Kubernetes that need it.
var powerful = map[syncer.Power]string{
	syncer.PermitAdmissionPolicies: "mutatingadmissionpolicies.admissionregistration.k8s.io mutatingadmissionpolicybindings.admissionregistration.k8s.io " +
		"validatingadmissionpolicies.admissionregistration.k8s.io validatingadmissionpolicybindings.admissionregistration.k8s.io",
	syncer.PermitAdmissionWebhooks:          "mutatingwebhookconfigurations.admissionregistration.k8s.io validatingwebhookconfigurations.admissionregistration.k8s.io",
	syncer.PermitAPIServices:                "apiservices.apiregistration.k8s.io",
	syncer.PermitCertificateSigningRequests: "certificatesigningrequests.certificates.k8s.io",
	syncer.PermitClusterTrustBundles:        "clustertrustbundles.certificates.k8s.io",
	syncer.PermitControllerRevisions:        "controllerrevisions.apps",
	syncer.PermitCSIDrivers:                 "csidrivers.storage.k8s.io",
	syncer.PermitCSINodes:                   "csinodes.storage.k8s.io",
	syncer.PermitCSIStorageCapacities:       "csistoragecapacities.storage.k8s.io",
	syncer.PermitCustomResourceDefinitions:  "customresourcedefinitions.apiextensions.k8s.io",
	syncer.PermitDeviceClasses:              "deviceclasses.resource.k8s.io",
	syncer.PermitDeviceTaintRules:           "devicetaintrules.resource.k8s.io",
	syncer.PermitEndpoints:                  "endpoints endpointslices.discovery.k8s.io",
	syncer.PermitFlowControl:                "flowschemas.flowcontrol.apiserver.k8s.io prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
	syncer.PermitIngressClasses:             "ingressclasses.networking.k8s.io",
	syncer.PermitIPAddresses:                "ipaddresses.networking.k8s.io",
	syncer.PermitLeases:                     "leases.coordination.k8s.io leasecandidates.coordination.k8s.io",
	syncer.PermitNamespaces:                 "namespaces",
	syncer.PermitNodes:                      "nodes",
	syncer.PermitPersistentVolumes:          "persistentvolumes",
	syncer.PermitPodCertificateRequests:     "podcertificaterequests.certificates.k8s.io",
	syncer.PermitPriorityClasses:            "priorityclasses.scheduling.k8s.io",
	syncer.PermitRBAC: "clusterrolebindings.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io " +
		"rolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io",
	syncer.PermitResourcePoolStatusRequests: "resourcepoolstatusrequests.resource.k8s.io",
	syncer.PermitResourceSlices:             "resourceslices.resource.k8s.io",
	syncer.PermitRuntimeClasses:             "runtimeclasses.node.k8s.io",
	syncer.PermitServiceCIDRs:               "servicecidrs.networking.k8s.io",
	syncer.PermitStorageClasses:             "storageclasses.storage.k8s.io",
	syncer.PermitStorageVersions:            "storageversionmigrations.storagemigration.k8s.io storageversions.internal.apiserver.k8s.io",
	syncer.PermitVolumeAttachments:          "volumeattachments.storage.k8s.io",
	syncer.PermitVolumeAttributesClasses:    "volumeattributesclasses.storage.k8s.io",
}

// harmless are the types of Kubernetes that are synced by default.
const harmless = "configmaps limitranges persistentvolumeclaims podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services " +
	"daemonsets.apps deployments.apps replicasets.apps statefulsets.apps horizontalpodautoscalers.autoscaling cronjobs.batch jobs.batch " +
	"ingresses.networking.k8s.io networkpolicies.networking.k8s.io poddisruptionbudgets.policy " +
	"resourceclaims.resource.k8s.io resourceclaimtemplates.resource.k8s.io podgroups.scheduling.k8s.io compositepodgroups.scheduling.k8s.io workloads.scheduling.k8s.io"

func parseAll(names string) []schema.GroupResource {
	var all []schema.GroupResource
	for _, name := range strings.Fields(names) {
		all = append(all, schema.ParseGroupResource(name))
	}
	return all
}

func allPowerful() (all []schema.GroupResource) {
	for _, names := range powerful {
		all = append(all, parseAll(names)...)
	}
	return all
}

// With one Power, CheckTypes accepts the types that need this Power, and rejects the types that need another one.
func TestPermitsAreNarrow(t *testing.T) {
	require.Len(t, powerful, len(syncer.Powers()))
	for _, p := range syncer.Powers() {
		require.NoError(t, syncer.CheckTypes([]syncer.Power{p}, parseAll(powerful[p])...), p)
		for _, gr := range allPowerful() {
			if !slices.Contains(parseAll(powerful[p]), gr) {
				require.ErrorContains(t, syncer.CheckTypes([]syncer.Power{p}, gr), gr.String()+" needs the permit ", "%s must not open it", p)
			}
		}
		parsed, err := syncer.ParsePower(string(p))
		require.NoError(t, err)
		require.Equal(t, p, parsed)
	}
	for _, gr := range allPowerful() {
		require.False(t, syncer.DefaultTypes(gr), gr)
	}
	for _, gr := range parseAll(harmless) {
		require.True(t, syncer.DefaultTypes(gr), gr)
		require.NoError(t, syncer.CheckTypes(nil, gr))
	}
}

// A type that builtinTypes lacks and whose group is one of Kubernetes needs a Power with its own name. If the name of
// the group only resembles one of Kubernetes, the type is custom.
func TestUnknownTypesAreRefused(t *testing.T) {
	for _, name := range []string{"podgangs.scheduling.k8s.io", "podsecuritypolicies.policy", "ingresses.extensions", "things.future.k8s.io",
		"things.future", "rules.authorization.k8s.io", "things.internal.apiserver.k8s.io", "policies.rbac.authorization.k8s.io"} {
		gr := schema.ParseGroupResource(name)
		require.False(t, syncer.DefaultTypes(gr), name)
		require.ErrorContains(t, syncer.CheckTypes(syncer.Powers(), gr), "needs the permit "+name)
		p, err := syncer.ParsePower(name)
		require.NoError(t, err)
		require.NoError(t, syncer.CheckTypes([]syncer.Power{p}, gr))
	}
	for _, name := range []string{"gateways.gateway.networking.k8s.io", "volumesnapshots.snapshot.storage.k8s.io", "verticalpodautoscalers.autoscaling.k8s.io",
		"applications.app.k8s.io", "jobsets.jobset.x-k8s.io", "widgets.example.org", "roles.example.org", "routes.route.openshift.io"} {
		require.True(t, syncer.DefaultTypes(schema.ParseGroupResource(name)), name)
		require.NoError(t, syncer.CheckTypes(nil, schema.ParseGroupResource(name)))
		_, err := syncer.ParsePower(name)
		require.ErrorContains(t, err, "want one of APIServices, ")
	}
	for _, name := range []string{"pods", "events", "events.events.k8s.io"} {
		require.False(t, syncer.DefaultTypes(schema.ParseGroupResource(name)), name)
		require.NoError(t, syncer.CheckTypes(nil, schema.ParseGroupResource(name)), name)
	}
	for _, name := range []string{"tokenreviews.authentication.k8s.io", "bindings", "others"} {
		require.False(t, syncer.DefaultTypes(schema.ParseGroupResource(name)), name)
		require.ErrorContains(t, syncer.CheckTypes(syncer.Powers(), schema.ParseGroupResource(name)), name+" is never synced")
	}
	for _, typo := range []string{"rbac", "Rbac", "roles", ""} {
		_, err := syncer.ParsePower(typo)
		require.Error(t, err, typo)
	}
}

// noResource are kinds that no API server serves as a resource of their own.
var noResource = map[string]bool{
	"APIGroup": true, "APIVersions": true, "AdmissionReview": true, "APIGroupDiscovery": true, "DeploymentRollback": true, "Eviction": true, "PodStatusResult": true,
	"RangeAllocation": true, "Scale": true, "SerializedReference": true, "Status": true, "TokenRequest": true, "WatchEvent": true,
}

// builtinTypes classifies each type that this release of client-go knows: with all Powers, CheckTypes accepts the type
// or reports that it is never synced.
func TestEveryTypeIsClassified(t *testing.T) {
	seen := 0
	for gvk := range clientscheme.Scheme.AllKnownTypes() {
		if gvk.Version == "__internal" || gvk.Group == "extensions" || noResource[gvk.Kind] || strings.HasSuffix(gvk.Kind, "List") || strings.HasSuffix(gvk.Kind, "Options") {
			continue
		}
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		if gvk.Kind == "Endpoints" {
			resource.Resource = "endpoints"
		}
		seen++
		err := syncer.CheckTypes(syncer.Powers(), resource.GroupResource())
		if err != nil {
			require.ErrorContains(t, err, "is never synced", gvk)
		}
	}
	require.Greater(t, seen, 60)
}

// New and NewAgent reject Options that select a type without the Power that it needs. The error names the type.
func TestTypesNeedTheirPermit(t *testing.T) {
	api := newSide(t, "any", regiontest.Options{}).api
	for p, names := range powerful {
		for _, gr := range parseAll(names) {
			opts := syncer.Options{Target: "a", Types: func(other schema.GroupResource) bool { return syncer.DefaultTypes(other) || other == gr }}
			_, err := syncer.New(api, api, opts)
			require.ErrorContains(t, err, "syncer: options: Types selects what Permit lacks: leave it out, or add the permit: "+gr.String()+" needs the permit "+string(p)+":")
			_, err = targets.NewAgent(api, api, opts)
			require.ErrorContains(t, err, gr.String())
			opts.Permit = []syncer.Power{p}
			_, err = syncer.New(api, api, opts)
			require.NoError(t, err)
		}
	}
	_, err := syncer.New(api, api, syncer.Options{Target: "a", Permit: []syncer.Power{syncer.PermitRBAC, "Everything"}})
	require.ErrorContains(t, err, `options: Permit[1]: there is no permit "Everything": want one of `)
}
