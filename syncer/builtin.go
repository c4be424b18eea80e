// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// consent is the condition under which the objects of a type may be synced.
type consent int

const (
	custom    consent = iota // the type is not one of Kubernetes itself: Options.Types and Options.Refuse decide
	byDefault                // without a permit: DefaultTypes selects the type
	byName                   // only if Options.Types selects the type
	byPermit                 // only if Options.Permit has the Power of the type
	never                    // under no condition
)

// typeClass is the condition under which a type may be synced, the Power that the type needs ("" without one), and the
// reason for this class.
type typeClass struct {
	how   consent
	power Power
	why   string
}

// builtinTypes classifies each type that kube-apiserver 1.36 serves, and some types of older releases. A test
// compares the table with a real server. For any other type in a group of Kubernetes see classify.
var builtinTypes = classes(
	class{byDefault, "", "workloads", "daemonsets.apps deployments.apps replicasets.apps statefulsets.apps cronjobs.batch jobs.batch " +
		"replicationcontrollers podtemplates podgroups.scheduling.k8s.io compositepodgroups.scheduling.k8s.io workloads.scheduling.k8s.io"},
	class{byDefault, "", "configuration of workloads", "configmaps secrets serviceaccounts"},
	class{byDefault, "", "networking within a namespace", "services ingresses.networking.k8s.io networkpolicies.networking.k8s.io"},
	class{byDefault, "", "claims of storage and devices", "persistentvolumeclaims resourceclaims.resource.k8s.io resourceclaimtemplates.resource.k8s.io"},
	class{byDefault, "", "autoscaling", "horizontalpodautoscalers.autoscaling"},
	class{byDefault, "", "policy that only restricts", "limitranges poddisruptionbudgets.policy resourcequotas"},

	class{byName, "", "controllers of the downstream make them", "pods"},
	class{byName, "", "they report events of their own cluster", "events events.events.k8s.io"},

	class{byPermit, PermitAdmissionPolicies, "it rejects or changes every request to the cluster",
		"mutatingadmissionpolicies.admissionregistration.k8s.io mutatingadmissionpolicybindings.admissionregistration.k8s.io " +
			"validatingadmissionpolicies.admissionregistration.k8s.io validatingadmissionpolicybindings.admissionregistration.k8s.io"},
	class{byPermit, PermitAdmissionWebhooks, "it sends every request to the cluster to a server of its author's choice",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io validatingwebhookconfigurations.admissionregistration.k8s.io"},
	class{byPermit, PermitAPIServices, "it serves a part of the cluster's API", "apiservices.apiregistration.k8s.io"},
	class{byPermit, PermitCertificateSigningRequests, "the cluster would sign for the identity of the syncer", "certificatesigningrequests.certificates.k8s.io"},
	class{byPermit, PermitClusterTrustBundles, "workloads trust the certificate authorities in it", "clustertrustbundles.certificates.k8s.io"},
	class{byPermit, PermitControllerRevisions, "a rollback runs its content", "controllerrevisions.apps"},
	class{byPermit, PermitCSIDrivers, "it decides how volumes are mounted and who gets tokens", "csidrivers.storage.k8s.io"},
	class{byPermit, PermitCSINodes, "it overrides the report of a node", "csinodes.storage.k8s.io"},
	class{byPermit, PermitCSIStorageCapacities, "it overrides the report of a storage driver", "csistoragecapacities.storage.k8s.io"},
	class{byPermit, PermitCustomResourceDefinitions, "it changes a type for the whole cluster", "customresourcedefinitions.apiextensions.k8s.io"},
	class{byPermit, PermitDeviceClasses, "it decides which devices all claims get", "deviceclasses.resource.k8s.io"},
	class{byPermit, PermitDeviceTaintRules, "it evicts pods of all namespaces", "devicetaintrules.resource.k8s.io"},
	class{byPermit, PermitEndpoints, "it sends traffic to any address, past the policies of other namespaces", "endpoints endpointslices.discovery.k8s.io"},
	class{byPermit, PermitFlowControl, "it decides which clients the API server serves first", "flowschemas.flowcontrol.apiserver.k8s.io prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"},
	class{byPermit, PermitIngressClasses, "it decides which controller serves the Ingresses of all namespaces", "ingressclasses.networking.k8s.io"},
	class{byPermit, PermitIPAddresses, "it takes an address of Services", "ipaddresses.networking.k8s.io"},
	class{byPermit, PermitLeases, "it decides who leads, and which node is alive", "leases.coordination.k8s.io leasecandidates.coordination.k8s.io"},
	class{byPermit, PermitNamespaces, "its labels decide which pods are admitted, and its deletion deletes all in it", "namespaces"},
	class{byPermit, PermitNodes, "it is a machine of the cluster", "nodes"},
	class{byPermit, PermitPersistentVolumes, "it gives access to any path of a node and any volume", "persistentvolumes"},
	class{byPermit, PermitPodCertificateRequests, "the cluster would sign for a pod or a node", "podcertificaterequests.certificates.k8s.io"},
	class{byPermit, PermitPriorityClasses, "pods of it evict others", "priorityclasses.scheduling.k8s.io"},
	class{byPermit, PermitRBAC, "it gives away the rights that the syncer has", "clusterrolebindings.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io " +
		"rolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io"},
	class{byPermit, PermitResourcePoolStatusRequests, "its status shows the devices of the whole cluster", "resourcepoolstatusrequests.resource.k8s.io"},
	class{byPermit, PermitResourceSlices, "it overrides the report of a node", "resourceslices.resource.k8s.io"},
	class{byPermit, PermitRuntimeClasses, "it decides with which runtime pods run", "runtimeclasses.node.k8s.io"},
	class{byPermit, PermitServiceCIDRs, "it decides which addresses Services get", "servicecidrs.networking.k8s.io"},
	class{byPermit, PermitStorageClasses, "it decides how volumes of all namespaces are made", "storageclasses.storage.k8s.io"},
	class{byPermit, PermitStorageVersions, "it rewrites all stored objects of a type", "storageversionmigrations.storagemigration.k8s.io storageversions.internal.apiserver.k8s.io"},
	class{byPermit, PermitVolumeAttachments, "it attaches any volume to any node", "volumeattachments.storage.k8s.io"},
	class{byPermit, PermitVolumeAttributesClasses, "it decides what volumes of all namespaces may have", "volumeattributesclasses.storage.k8s.io"},

	class{never, "", "it is a request to an API server, not an object", "bindings componentstatuses imagereviews.imagepolicy.k8s.io " +
		"selfsubjectreviews.authentication.k8s.io tokenrequests.authentication.k8s.io tokenreviews.authentication.k8s.io " +
		"localsubjectaccessreviews.authorization.k8s.io selfsubjectaccessreviews.authorization.k8s.io " +
		"selfsubjectrulesreviews.authorization.k8s.io subjectaccessreviews.authorization.k8s.io"},
)

// class is a row of builtinTypes.
type class struct {
	how   consent
	power Power
	why   string
	types string // as resource.group, separated by blanks
}

func classes(rows ...class) map[schema.GroupResource]typeClass {
	all := map[schema.GroupResource]typeClass{}
	for _, row := range rows {
		for _, name := range strings.Fields(row.types) {
			all[schema.ParseGroupResource(name)] = typeClass{row.how, row.power, row.why}
		}
	}
	return all
}

// classify returns the class of a type. If builtinTypes lacks a type of a group of Kubernetes (see isOfKubernetes),
// the effect of the type is unknown: the type needs the Power with its own name, even if a CustomResourceDefinition
// defines it. A type of the core group that builtinTypes lacks is never synced, since Kubernetes adds no types to that
// group.
func classify(gr schema.GroupResource) typeClass {
	if c, ok := builtinTypes[gr]; ok {
		return c
	}
	if gr.Group == "" {
		return typeClass{how: never, why: "this release does not know it"}
	}
	if isOfKubernetes(gr.Group) {
		return typeClass{byPermit, Power(gr.String()), "this release does not know which power the type gives"}
	}
	return typeClass{how: custom}
}

// customGroups are groups of add-ons with names like those of Kubernetes itself.
var customGroups = []string{"app.k8s.io", "autoscaling.k8s.io", "metrics.k8s.io"}

// isOfKubernetes reports whether kube-apiserver itself serves a group, or whether the group is named like such a
// group. A group without a dot cannot be a group of custom resources. Groups of add-ons have longer names, such as
// gateway.networking.k8s.io, except customGroups.
func isOfKubernetes(group string) bool {
	first, rest, dotted := strings.Cut(group, ".")
	switch {
	case !dotted:
		return true
	case rest == "k8s.io":
		return first != "" && !slices.Contains(customGroups, group)
	}
	return rest == "authorization.k8s.io" || rest == "apiserver.k8s.io"
}
