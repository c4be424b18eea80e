// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LocalPeer is the name of the Peer for the installation itself. It needs no kubeconfig.
const LocalPeer = "local"

// Peer describes to a configuration plane how to reach one regional control
// plane. An installation that is a master cannot be a peer.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=atoll
// +kubebuilder:metadata:labels="atoll.dev/schema-version=1"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.kubeCarrierVersion.version`
// +kubebuilder:printcolumn:name="Regions",type=string,JSONPath=`.status.regions[*].name`,priority=1
// +kubebuilder:printcolumn:name="Last Contact",type=date,JSONPath=`.status.lastContact`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Peer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	//
	// +optional
	Spec PeerSpec `json:"spec,omitzero"`

	// Status is the observed state.
	//
	// +optional
	Status PeerStatus `json:"status,omitzero"`
}

// PeerSpec describes how to reach a peer.
type PeerSpec struct {
	// KubeconfigSecret names the Secret that holds the peer's kubeconfig under
	// the key kubeconfig. The peer named local needs none.
	//
	// +optional
	KubeconfigSecret SecretReference `json:"kubeconfigSecret,omitzero"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// Name is the Secret's name.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace is the Secret's namespace; empty means that of the installation.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// PeerStatus is the observed state of a Peer.
type PeerStatus struct {
	// Phase summarizes the conditions for people. Programs read the conditions.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Phase PeerPhase `json:"phase,omitempty"`

	// Conditions are the observations: Ready, Reachable, KubeconfigValid,
	// RegionsUnique.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the spec that the status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Regions are the regions that the peer serves. An unreachable peer keeps its
	// last known regions.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=provider
	// +kubebuilder:validation:MaxItems=1024
	Regions []RegionReference `json:"regions,omitempty"`

	// KubeCarrierVersion is the version of the installation in the peer.
	//
	// +optional
	KubeCarrierVersion VersionInfo `json:"kubeCarrierVersion,omitzero"`

	// ClusterUID is the UID of the kube-system namespace of the accepted cluster;
	// empty until one is accepted. While it is set, credentials that reach another
	// cluster are rejected. To replace the cluster, delete the Peer and create it
	// again.
	//
	// +optional
	ClusterUID types.UID `json:"clusterUID,omitempty"`

	// LastContact is when the peer last responded, as of the last change of another
	// field of the status: further responses alone cause no write.
	//
	// +optional
	LastContact metav1.Time `json:"lastContact,omitzero"`
}

// RegionReference names a region, elsewhere written as NAME.PROVIDER.
type RegionReference struct {
	// Name is the region's name, unique for its provider.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Provider is the namespace of the provider.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Provider string `json:"provider"`
}

// VersionInfo is the version of an installation.
type VersionInfo struct {
	// Version is the release, such as v0.2.0.
	//
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`

	// Commit is the commit that was built.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Commit string `json:"commit,omitempty"`

	// Branch is the branch that was built.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Branch string `json:"branch,omitempty"`

	// BuildDate is when it was built.
	//
	// +optional
	BuildDate metav1.Time `json:"buildDate,omitzero"`

	// GoVersion is the Go release that built it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	GoVersion string `json:"goVersion,omitempty"`

	// Platform is the operating system and architecture, such as linux/amd64.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Platform string `json:"platform,omitempty"`
}

// PeerPhase summarizes a Peer for people.
type PeerPhase string

const (
	// PeerPending means that the peer was not reached yet.
	PeerPending PeerPhase = "Pending"
	// PeerReady means that the peer is reachable and serves its regions.
	PeerReady PeerPhase = "Ready"
	// PeerNotReady means that the peer is unreachable, refused, or misconfigured.
	PeerNotReady PeerPhase = "NotReady"
	// PeerTerminating means that the Peer is being removed.
	PeerTerminating PeerPhase = "Terminating"
)

// PeerList is a list of Peers.
//
// +kubebuilder:object:root=true
type PeerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the Peers.
	Items []Peer `json:"items"`
}
