// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LocalPeer is the name of the Peer that stands for the installation itself.
// It needs no kubeconfig.
const LocalPeer = "local"

// Peer tells a configuration plane how to reach one regional control plane. It
// cannot be an installation that is a master itself.
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

	// Spec is how to reach the peer.
	//
	// +optional
	Spec PeerSpec `json:"spec,omitzero"`

	// Status is what was observed.
	//
	// +optional
	Status PeerStatus `json:"status,omitzero"`
}

// PeerSpec is how to reach a peer.
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

	// Namespace is the Secret's namespace; empty is that of the installation.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// PeerStatus is what was observed of a Peer.
type PeerStatus struct {
	// Phase sums the conditions up for people. Programs read the conditions.
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

	// ObservedGeneration is the generation of the spec that the status speaks of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Regions are those that the peer serves. A peer that does not answer keeps
	// the last known ones.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=provider
	// +kubebuilder:validation:MaxItems=1024
	Regions []RegionReference `json:"regions,omitempty"`

	// KubeCarrierVersion is what the installation there says of itself.
	//
	// +optional
	KubeCarrierVersion VersionInfo `json:"kubeCarrierVersion,omitzero"`

	// ClusterUID is the UID of the kube-system namespace of the cluster that was
	// accepted as this peer; empty as long as none was. Credentials that reach
	// another cluster are refused while it is set. To let the Peer be another
	// cluster, delete it and create it again.
	//
	// +optional
	ClusterUID types.UID `json:"clusterUID,omitempty"`

	// LastContact is when the peer last answered, as of the last time that
	// something else in the status changed: a peer that goes on answering causes
	// no write.
	//
	// +optional
	LastContact metav1.Time `json:"lastContact,omitzero"`
}

// RegionReference names a region, as NAME.PROVIDER does elsewhere.
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

// PeerPhase is one word about a Peer, for people.
type PeerPhase string

const (
	// PeerPending was not reached yet.
	PeerPending PeerPhase = "Pending"
	// PeerReady answers and serves its regions.
	PeerReady PeerPhase = "Ready"
	// PeerNotReady does not answer, or something about it is wrong.
	PeerNotReady PeerPhase = "NotReady"
	// PeerTerminating is being removed.
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
