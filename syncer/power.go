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

// Power names an identity, or control over a cluster, that some of Kubernetes' own types give to the authors of their
// objects. A syncer makes such objects downstream with its own rights, so with the Power in Options.Permit every author of
// such an object upstream has it downstream. Each constant is one opt-in.
//
// A type of Kubernetes that this release does not know is refused too. Its Power is its name, such as
// "podgangs.scheduling.k8s.io".
type Power string

// The powers. "They" are the authors of the objects.
const (
	// PermitAdmissionPolicies: their rules reject or change every request to the cluster.
	PermitAdmissionPolicies Power = "AdmissionPolicies"
	// PermitAdmissionWebhooks: a server of their choice reads and changes every request to the cluster, Secrets included.
	PermitAdmissionWebhooks Power = "AdmissionWebhooks"
	// PermitAPIServices: a server of their choice answers for a group of the cluster's API.
	PermitAPIServices Power = "APIServices"
	// PermitCertificateSigningRequests: the cluster signs for the identity that creates the request, which is the
	// syncer's. The certificate stays there: an upstream API server takes no approval in a status (ReasonStatusRefused).
	PermitCertificateSigningRequests Power = "CertificateSigningRequests"
	// PermitClusterTrustBundles: workloads trust their certificate authorities.
	PermitClusterTrustBundles Power = "ClusterTrustBundles"
	// PermitControllerRevisions: a rollback of a DaemonSet or StatefulSet runs the content that they wrote.
	PermitControllerRevisions Power = "ControllerRevisions"
	// PermitCSIDrivers: they decide how volumes are mounted, and which drivers get tokens of ServiceAccounts.
	PermitCSIDrivers Power = "CSIDrivers"
	// PermitCSINodes: they decide which drivers nodes are believed to have.
	PermitCSINodes Power = "CSINodes"
	// PermitCSIStorageCapacities: they decide where the scheduler believes that volumes fit.
	PermitCSIStorageCapacities Power = "CSIStorageCapacities"
	// PermitCustomResourceDefinitions: they change types for the whole cluster, with conversion by a server of their choice.
	// Package crds keeps definitions in step without it.
	PermitCustomResourceDefinitions Power = "CustomResourceDefinitions"
	// PermitDeviceClasses: they decide which devices a claim gets, and how these are configured.
	PermitDeviceClasses Power = "DeviceClasses"
	// PermitDeviceTaintRules: they evict every pod that uses a device.
	PermitDeviceTaintRules Power = "DeviceTaintRules"
	// PermitEndpoints: they send the traffic of Services to any address, past the NetworkPolicies of other namespaces.
	PermitEndpoints Power = "Endpoints"
	// PermitFlowControl: they starve the API server's other clients.
	PermitFlowControl Power = "FlowControl"
	// PermitIngressClasses: they decide which controller serves the Ingresses of all namespaces.
	PermitIngressClasses Power = "IngressClasses"
	// PermitIPAddresses: they take addresses of Services away.
	PermitIPAddresses Power = "IPAddresses"
	// PermitLeases: they win elections of leaders in place of controllers, and keep nodes alive that are not.
	PermitLeases Power = "Leases"
	// PermitNamespaces: labels of a Namespace decide which pods it admits, and deleting it deletes all in it. Namespaces
	// that objects need are made without it.
	PermitNamespaces Power = "Namespaces"
	// PermitNodes: they register machines, and taint or remove those that are there.
	PermitNodes Power = "Nodes"
	// PermitPersistentVolumes: any path of any node, or any volume of the storage, becomes theirs.
	PermitPersistentVolumes Power = "PersistentVolumes"
	// PermitPodCertificateRequests: the cluster signs certificates for pods and nodes.
	PermitPodCertificateRequests Power = "PodCertificateRequests"
	// PermitPriorityClasses: their pods evict those of the system.
	PermitPriorityClasses Power = "PriorityClasses"
	// PermitRBAC: they get each right that the syncer has downstream, and bind those to anyone.
	PermitRBAC Power = "RBAC"
	// PermitResourcePoolStatusRequests: they read which devices the whole cluster has and who uses them.
	PermitResourcePoolStatusRequests Power = "ResourcePoolStatusRequests"
	// PermitResourceSlices: they decide which devices nodes are believed to have.
	PermitResourceSlices Power = "ResourceSlices"
	// PermitRuntimeClasses: they decide with which runtime pods run, and on which nodes.
	PermitRuntimeClasses Power = "RuntimeClasses"
	// PermitServiceCIDRs: they decide which addresses the Services of the cluster get.
	PermitServiceCIDRs Power = "ServiceCIDRs"
	// PermitStorageClasses: they decide how and with which credentials volumes are made for all namespaces.
	PermitStorageClasses Power = "StorageClasses"
	// PermitStorageVersions: they decide in which version all objects of a type are stored, and have them written anew.
	PermitStorageVersions Power = "StorageVersions"
	// PermitVolumeAttachments: they attach any volume to any node.
	PermitVolumeAttachments Power = "VolumeAttachments"
	// PermitVolumeAttributesClasses: they decide which performance, at whose cost, volumes of all namespaces may have.
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

// ParsePower returns the Power of that name, as a command line has it: one of Powers, or the name of a type of Kubernetes
// that this release does not know. Any other name is an error that lists Powers.
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

// CheckTypes returns an error for each of the types that may not be synced with those powers. It names the type and the
// Power that it needs. Custom types, and those that need no Power, are never an error. It is pure.
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

// permits says why a type may not be synced with those powers; "" if it may.
func permits(permit []Power, gr schema.GroupResource) string {
	switch c := classify(gr); {
	case c.how == never:
		return "is never synced: " + c.why
	case c.how == byPermit && !slices.Contains(permit, c.power):
		return fmt.Sprintf("needs the permit %s: %s", c.power, c.why)
	}
	return ""
}

// permitted are those of the types that may be synced with those powers.
func permitted(permit []Power, types []schema.GroupResource) []schema.GroupResource {
	return slices.DeleteFunc(slices.Clone(types), func(gr schema.GroupResource) bool { return permits(permit, gr) != "" })
}

// powerfulTypes are the types for which there is a Power, sorted.
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
