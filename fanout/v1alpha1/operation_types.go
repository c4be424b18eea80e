// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// OperationState is what a central log's record decides.
//
// +kubebuilder:validation:Enum=Pending;Committed
type OperationState string

const (
	// OperationPending may be aborted by deleting the record, by anybody.
	OperationPending OperationState = "Pending"
	// OperationCommitted is rolled forward by anybody, to its end.
	OperationCommitted OperationState = "Committed"
)

// Operation is the record of one operation in a central log. Its change from
// Pending to Committed is the operation's commit point; deleting it while it
// is Pending is the abort. Nobody rolls a Pending one forward but its holder.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=fop,categories=atoll
// +kubebuilder:metadata:labels="atoll.dev/schema-version=1"
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.target`
// +kubebuilder:printcolumn:name="Holder",type=string,JSONPath=`.spec.holder`,priority=1
// +kubebuilder:printcolumn:name="Key",type=string,JSONPath=`.spec.key`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Operation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the record.
	Spec OperationSpec `json:"spec"`
}

// OperationSpec is the record of one operation.
//
// +kubebuilder:validation:XValidation:rule="self.operation == oldSelf.operation && self.kind == oldSelf.kind && self.began == oldSelf.began && has(self.key) == has(oldSelf.key) && (!has(self.key) || self.key == oldSelf.key)",message="operation, kind, key and began of a record cannot change: begin another operation"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.state) || oldSelf.state != 'Committed' || (has(self.state) && self.state == 'Committed')",message="a committed operation stays committed: it is rolled forward, never back"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.targetUID) || (has(self.targetUID) && self.targetUID == oldSelf.targetUID)",message="the target's UID cannot change once it is recorded"
type OperationSpec struct {
	// Operation is the operation's ID, ordered by time.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Operation string `json:"operation"`

	// Kind says which code can read the payload.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Kind string `json:"kind"`

	// Key is the idempotency key that the caller gave, if any.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Key string `json:"key,omitempty"`

	// Holder names the process that works on the operation. It decides nothing.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Holder string `json:"holder,omitempty"`

	// State is Pending until the commit.
	//
	// +optional
	// +kubebuilder:default=Pending
	State OperationState `json:"state,omitempty"`

	// Step is how far the holder has come, in its own short word.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Step string `json:"step,omitempty"`

	// Target is the peer in which the object comes into being.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Target string `json:"target,omitempty"`

	// TargetUID is the UID of the target's object, set with the commit: what
	// tells it from a later object of the same name.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	TargetUID types.UID `json:"targetUID,omitempty"`

	// Digest is the SHA-256 of the requested content, in hexadecimal.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`

	// Payload is what the holder needs to finish the operation after a crash,
	// at most 1 MiB before base64.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1398104
	Payload []byte `json:"payload,omitempty"`

	// Outcome is what the operation came to, kept under Key for retries.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1398104
	Outcome []byte `json:"outcome,omitempty"`

	// Ended is when it came to its end, from which its retention counts.
	//
	// +optional
	Ended *metav1.MicroTime `json:"ended,omitempty"`

	// Began is when the operation began, for people.
	Began metav1.MicroTime `json:"began"`
}

// OperationList is a list of Operations.
//
// +kubebuilder:object:root=true
type OperationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the Operations.
	Items []Operation `json:"items"`
}
