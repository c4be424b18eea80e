// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// Account is an actor, a provider or a tenant or both, and the same in every
// peer: a namespace, and the Roles and RoleBindings of its subjects. Its
// replicas follow its home by revision. It is Unready while a peer lacks it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=acc,categories=atoll
// +kubebuilder:metadata:labels="atoll.dev/schema-version=1"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Display Name",type=string,JSONPath=`.spec.metadata.displayName`
// +kubebuilder:printcolumn:name="Roles",type=string,JSONPath=`.spec.roles`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.status.namespace.name`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.fanout.stage`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.spec.fanout.revision.number`
// +kubebuilder:printcolumn:name="Present",type=integer,JSONPath=`.status.peers.present`,priority=1
// +kubebuilder:printcolumn:name="Peers",type=integer,JSONPath=`.status.peers.total`,priority=1
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.fanout.claim.role`,priority=1
// +kubebuilder:printcolumn:name="Home",type=string,JSONPath=`.spec.fanout.home.peer`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Account struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state. An absent spec becomes empty, so that its
	// rules always see a change.
	//
	// +optional
	// +kubebuilder:default={}
	Spec AccountSpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status AccountStatus `json:"status,omitzero"`
}

// AccountSpec is the desired state of an Account. A change of the payload on
// its home is a request: it takes effect nowhere until a coordinator has
// committed a revision for it.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.fanout) || has(self.fanout)",message="claim cannot be removed: use apply instead of replace, or keep spec.fanout as it is; to give the name up, delete the object and let a coordinator clear all peers"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.?fanout.stage.orValue('Reserved') == 'Reserved'",message="an Account is created Reserved or without spec.fanout: leave spec.fanout out, a coordinator adopts the object",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="has(oldSelf.fanout) || !has(self.fanout) || (self.fanout.?claim.role.orValue('None') == 'Primary' && self.fanout.?stage.orValue('None') == 'Active')",message="an object that was applied without a claim is adopted as a Primary and Active at once, never as a reservation: adopt it through a coordinator"
// +kubebuilder:validation:XValidation:rule="self.?fanout.stage.orValue('Reserved') in ['Reserved', 'Active', 'Removing']",message="the stages of an Account are Reserved, Active, Removing"
// +kubebuilder:validation:XValidation:rule="!(self.?fanout.stage.orValue('None') == 'Reserved' && oldSelf.?fanout.stage.orValue('None') == 'Reserved') || (has(self.metadata) == has(oldSelf.metadata) && (!has(self.metadata) || self.metadata == oldSelf.metadata) && has(self.roles) == has(oldSelf.roles) && (!has(self.roles) || self.roles == oldSelf.roles) && has(self.subjects) == has(oldSelf.subjects) && (!has(self.subjects) || self.subjects == oldSelf.subjects))",message="a reservation cannot be changed: wait until its operation has ended",messageExpression="'a reservation cannot be changed: operation ' + self.fanout.claim.operation + ' holds the name for peer ' + self.fanout.claim.target + '; wait until it has ended'"
// +kubebuilder:validation:XValidation:rule="!has(self.fanout) || !has(oldSelf.fanout) || (has(self.fanout.home) ? self.fanout.home.peer == self.fanout.claim.peer : self.fanout.claim.role == 'Primary') || self.?fanout.revision.number.orValue(-1) > oldSelf.?fanout.revision.number.orValue(-1) || (has(self.metadata) == has(oldSelf.metadata) && (!has(self.metadata) || self.metadata == oldSelf.metadata) && has(self.roles) == has(oldSelf.roles) && (!has(self.roles) || self.roles == oldSelf.roles) && has(self.subjects) == has(oldSelf.subjects) && (!has(self.subjects) || self.subjects == oldSelf.subjects))",message="a replica follows its home: change the Account there, a coordinator brings the change to all peers",messageExpression="'a replica follows its home: change the Account in peer ' + (has(self.fanout.home) ? self.fanout.home.peer : self.fanout.claim.primary.peer) + ', a coordinator brings the change to all peers'"
type AccountSpec struct {
	// Metadata describes the account to people.
	//
	// +optional
	Metadata AccountMetadata `json:"metadata,omitzero"`

	// Roles are the roles of the account: Provider, Tenant, or both.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	Roles []AccountRole `json:"roles,omitempty"`

	// Subjects are the users, groups and service accounts that act for it.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Subjects []rbacv1.Subject `json:"subjects,omitempty"`

	// Fanout is the protocol's part. Only coordinators write it.
	//
	// +optional
	Fanout *fanoutv1alpha1.Fanout `json:"fanout,omitempty"`
}

// AccountMetadata describes an Account to people.
type AccountMetadata struct {
	// DisplayName is a short name.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	DisplayName string `json:"displayName,omitempty"`

	// Description describes the account.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`
}

// AccountRole is a role of an Account.
//
// +kubebuilder:validation:Enum=Provider;Tenant
type AccountRole string

const (
	// AccountProvider offers services and owns regions.
	AccountProvider AccountRole = "Provider"
	// AccountTenant uses services.
	AccountTenant AccountRole = "Tenant"
)

// AccountStatus is the observed state of an Account.
type AccountStatus struct {
	// ObservedGeneration is the generation of the spec that the status is
	// about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase is a one-word summary of the conditions for people. Programs read
	// the conditions.
	//
	// +optional
	Phase AccountPhase `json:"phase,omitempty"`

	// Conditions are the observations: Ready, Claimed, NamespaceReady,
	// PresentInAllPeers, and one per peer that is an exception.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=48
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Namespace is the account's own namespace, of the same name in each peer.
	//
	// +optional
	Namespace NamespaceReference `json:"namespace,omitzero"`

	// Peers counts the peers in which the account is present.
	//
	// +optional
	Peers PeerSummary `json:"peers,omitzero"`
}

// NamespaceReference names a namespace.
type NamespaceReference struct {
	// Name is the namespace's name.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// PeerSummary counts the peers in which an object is present, and names
// exceptions up to a bound: a status must stay small with a thousand peers.
type PeerSummary struct {
	// Total is the number of peers in the ring.
	//
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"`

	// Present is the number of peers that hold the latest revision.
	//
	// +kubebuilder:validation:Minimum=0
	Present int32 `json:"present"`

	// Missing names reachable peers that lack the latest revision, sorted, at
	// most 32.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	Missing []string `json:"missing,omitempty"`

	// Unknown names unreachable peers, sorted, at most 32. They are not
	// Missing: an unreachable peer may hold the object.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	Unknown []string `json:"unknown,omitempty"`
}

// AccountPhase is a one-word summary of an Account for people.
//
// +kubebuilder:validation:MaxLength=64
type AccountPhase string

const (
	// AccountPending has no claim yet or is still Reserved. This release does not set it.
	AccountPending AccountPhase = "Pending"
	// AccountReady is present in all peers.
	AccountReady AccountPhase = "Ready"
	// AccountUnready is missing in a peer, or a peer is unreachable.
	AccountUnready AccountPhase = "Unready"
	// AccountTerminating is being removed from all peers.
	AccountTerminating AccountPhase = "Terminating"
)

// AccountList is a list of Accounts.
//
// +kubebuilder:object:root=true
type AccountList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the Accounts.
	Items []Account `json:"items"`
}
