// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Power is an identity, or control over a cluster, that some of Kubernetes' own types give to the authors of their
// objects. A syncer creates such objects downstream with its own rights. So with a Power in Options.Permit, every
// author of such an object upstream has that power downstream. Each constant is one opt-in.
//
// A type of Kubernetes that this release does not know is refused too. Its Power is its name, such as
// "podgangs.scheduling.k8s.io".
type Power string

// The powers.
const (
	// PermitAdmissionPolicies lets authors reject or change every request to the cluster by their rules.
	PermitAdmissionPolicies Power = "AdmissionPolicies"
	// PermitAdmissionWebhooks lets a server of the author's choice read and change every request to the cluster,
	// including Secrets.
	PermitAdmissionWebhooks Power = "AdmissionWebhooks"
	// PermitAPIServices lets a server of the author's choice serve a group of the cluster's API.
	PermitAPIServices Power = "APIServices"
	// PermitCertificateSigningRequests lets the cluster sign for the identity that creates the request, which is the
	// syncer's. The certificate stays downstream: an upstream API server rejects an approval in a status
	// (ReasonStatusRefused).
	PermitCertificateSigningRequests Power = "CertificateSigningRequests"
	// PermitClusterTrustBundles makes workloads trust the certificate authorities of the author.
	PermitClusterTrustBundles Power = "ClusterTrustBundles"
	// PermitControllerRevisions lets a rollback of a DaemonSet or StatefulSet run content of the author.
	PermitControllerRevisions Power = "ControllerRevisions"
	// PermitCSIDrivers lets authors decide how volumes are mounted, and which drivers get tokens of ServiceAccounts.
	PermitCSIDrivers Power = "CSIDrivers"
	// PermitCSINodes lets authors decide which drivers nodes are believed to have.
	PermitCSINodes Power = "CSINodes"
	// PermitCSIStorageCapacities lets authors decide where the scheduler believes that volumes fit.
	PermitCSIStorageCapacities Power = "CSIStorageCapacities"
	// PermitCustomResourceDefinitions lets authors change types for the whole cluster, with conversion by a server of
	// their choice. Package crds syncs definitions without this permit.
	PermitCustomResourceDefinitions Power = "CustomResourceDefinitions"
	// PermitDeviceClasses lets authors decide which devices a claim gets, and how the devices are configured.
	PermitDeviceClasses Power = "DeviceClasses"
	// PermitDeviceTaintRules lets authors evict every pod that uses a device.
	PermitDeviceTaintRules Power = "DeviceTaintRules"
	// PermitEndpoints lets authors send the traffic of Services to any address, past the NetworkPolicies of other
	// namespaces.
	PermitEndpoints Power = "Endpoints"
	// PermitFlowControl lets authors starve the API server's other clients.
	PermitFlowControl Power = "FlowControl"
	// PermitIngressClasses lets authors decide which controller serves the Ingresses of all namespaces.
	PermitIngressClasses Power = "IngressClasses"
	// PermitIPAddresses lets authors take addresses from Services.
	PermitIPAddresses Power = "IPAddresses"
	// PermitLeases lets authors win leader elections in place of controllers, and make dead nodes look alive.
	PermitLeases Power = "Leases"
	// PermitNamespaces lets authors set the labels of a Namespace, which decide which pods it admits, and delete it
	// with all objects in it. Namespaces that objects need are created without this permit.
	PermitNamespaces Power = "Namespaces"
	// PermitNodes lets authors register machines, and taint or remove existing ones.
	PermitNodes Power = "Nodes"
	// PermitPersistentVolumes gives authors any path of any node, and any volume of the storage.
	PermitPersistentVolumes Power = "PersistentVolumes"
	// PermitPodCertificateRequests lets the cluster sign certificates for pods and nodes on request of authors.
	PermitPodCertificateRequests Power = "PodCertificateRequests"
	// PermitPriorityClasses lets pods of authors evict those of the system.
	PermitPriorityClasses Power = "PriorityClasses"
	// PermitRBAC lets authors grant each right that the syncer has downstream to any user.
	PermitRBAC Power = "RBAC"
	// PermitResourcePoolStatusRequests lets authors read which devices the whole cluster has and who uses them.
	PermitResourcePoolStatusRequests Power = "ResourcePoolStatusRequests"
	// PermitResourceSlices lets authors decide which devices nodes are believed to have.
	PermitResourceSlices Power = "ResourceSlices"
	// PermitRuntimeClasses lets authors decide with which runtime, and on which nodes, pods run.
	PermitRuntimeClasses Power = "RuntimeClasses"
	// PermitServiceCIDRs lets authors decide which addresses the Services of the cluster get.
	PermitServiceCIDRs Power = "ServiceCIDRs"
	// PermitStorageClasses lets authors decide how, and with which credentials, volumes are provisioned for all
	// namespaces.
	PermitStorageClasses Power = "StorageClasses"
	// PermitStorageVersions lets authors decide in which version all objects of a type are stored, and rewrite all of
	// them.
	PermitStorageVersions Power = "StorageVersions"
	// PermitVolumeAttachments lets authors attach any volume to any node.
	PermitVolumeAttachments Power = "VolumeAttachments"
	// PermitVolumeAttributesClasses lets authors decide which performance volumes of all namespaces may have, and so
	// their cost.
	PermitVolumeAttributesClasses Power = "VolumeAttributesClasses"
)

// Powers returns all powers that this release knows by name, sorted.
func Powers() []Power {
	var all []Power
	for _, t := range builtinTypes {
		if t.power != "" {
			all = append(all, t.power)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ParsePower returns the Power with that name, for example from a command line. The name is one of Powers, or the name
// of a type of Kubernetes that this release does not know. For any other name it returns an error that lists Powers.
func ParsePower(name string) (Power, error) {
	p := Power(name)
	if slices.Contains(Powers(), p) {
		return p, nil
	}
	if strings.Contains(name, ".") && classify(schema.ParseGroupResource(name)).power == p {
		return p, nil
	}
	var known []string
	for _, p := range Powers() {
		known = append(known, string(p))
	}
	return "", fmt.Errorf("there is no permit %q: want one of %s", name, strings.Join(known, ", "))
}

// CheckTypes returns an error that names each of the types that may not be synced with those powers, with the Power
// that it needs or with the reason why it is never synced. Custom types, and other types that can be synced without a
// Power, are never an error. It is pure.
func CheckTypes(permit []Power, types ...schema.GroupResource) error {
	var wrong []string
	for _, gr := range types {
		if why := permits(permit, gr); why != "" {
			wrong = append(wrong, gr.String()+" "+why)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(wrong, "; "))
}

// permits returns why a type may not be synced with those powers; "" if it may.
func permits(permit []Power, gr schema.GroupResource) string {
	switch c := classify(gr); {
	case c.how == never:
		return "is never synced: " + c.why
	case c.how == byPermit && !slices.Contains(permit, c.power):
		return fmt.Sprintf("needs the permit %s: %s", c.power, c.why)
	}
	return ""
}

// permitted returns those of the types that may be synced with those powers.
func permitted(permit []Power, types []schema.GroupResource) []schema.GroupResource {
	return slices.DeleteFunc(slices.Clone(types), func(gr schema.GroupResource) bool { return permits(permit, gr) != "" })
}

// powerfulTypes returns the types that need a Power, sorted.
func powerfulTypes() []schema.GroupResource {
	var all []schema.GroupResource
	for gr, c := range builtinTypes {
		if c.how == byPermit {
			all = append(all, gr)
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) })
	return all
}
