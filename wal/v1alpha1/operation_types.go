// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// OperationState is the state of a record in a central log.
//
// +kubebuilder:validation:Enum=Beginning;Open;Pending;Committed;Ended;Key
type OperationState string

const (
	// OperationBeginning is a record that has not taken its key yet. It decides nothing,
	// and any coordinator may delete it.
	OperationBeginning OperationState = "Beginning"
	// OperationOpen is an operation that is under way and decided in the peers.
	OperationOpen OperationState = "Open"
	// OperationPending is an add of the first release that this record decides, and that is
	// not decided yet. Any coordinator may abort it.
	OperationPending OperationState = "Pending"
	// OperationCommitted is such an add after its commit. Any coordinator may roll it
	// forward.
	OperationCommitted OperationState = "Committed"
	// OperationEnded is history: it decides nothing.
	OperationEnded OperationState = "Ended"
	// OperationKey is no operation: the object holds an idempotency key for one.
	OperationKey OperationState = "Key"
)

// Operation is the entry of one operation in a central log. The peers decide the operation,
// except an add of the first release that is decided here: its record was committed by the
// change from Pending to Committed, and is aborted by the change from Pending to Ended, or
// by its deletion while it is Pending. No coordinator creates such records any longer.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=fop,categories=atoll
// +kubebuilder:metadata:labels="atoll.dev/schema-version=1"
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.spec.action`
// +kubebuilder:printcolumn:name="Object",type=string,JSONPath=`.spec.object`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.spec.step`
// +kubebuilder:printcolumn:name="Holder",type=string,JSONPath=`.spec.holder`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.target`,priority=1
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
// +kubebuilder:validation:XValidation:rule="self.operation == oldSelf.operation && has(self.kind) == has(oldSelf.kind) && (!has(self.kind) || self.kind == oldSelf.kind) && self.began == oldSelf.began && has(self.key) == has(oldSelf.key) && (!has(self.key) || self.key == oldSelf.key)",message="operation, kind, key and began of a record cannot change: begin another operation"
// +kubebuilder:validation:XValidation:rule="self.state == oldSelf.state || (oldSelf.state == 'Beginning' && self.state in ['Open', 'Pending']) || (oldSelf.state == 'Pending' && self.state == 'Committed') || (oldSelf.state in ['Open', 'Pending', 'Committed'] && self.state == 'Ended')",message="state goes forward only: a decided operation stays decided, an ended one stays ended",messageExpression="'state cannot go from ' + oldSelf.state + ' to ' + self.state + ': a decided operation stays decided, an ended one stays ended'"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.targetUID) || (has(self.targetUID) && self.targetUID == oldSelf.targetUID && has(self.target) && self.target == oldSelf.target)",message="the target's UID cannot change once it is recorded"
// +kubebuilder:validation:XValidation:rule="self.state != 'Committed' || (has(self.target) && has(self.targetUID))",message="a decision names the target and the UID of the object there"
// +kubebuilder:validation:XValidation:rule="oldSelf.state != 'Ended' || (self.ended == oldSelf.ended && has(self.write) == has(oldSelf.write) && (!has(self.write) || self.write == oldSelf.write))",message="what has ended is history: begin another operation"
// +kubebuilder:validation:XValidation:rule="(self.state == 'Ended') == has(self.ended)",message="ended goes with state Ended"
// +kubebuilder:validation:XValidation:rule="(self.state == 'Key') == has(self.keyOf)",message="keyOf goes with state Key"
type OperationSpec struct {
	// Operation is the operation's ID, ordered by time. It is the record's name.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Operation string `json:"operation"`

	// State is the state of the record.
	State OperationState `json:"state"`

	// Kind identifies the code that can read the payload.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Kind string `json:"kind,omitempty"`

	// Action is what the operation does, for people.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Action string `json:"action,omitempty"`

	// Object is the object of the action, for people.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Object string `json:"object,omitempty"`

	// Key is the idempotency key that the caller gave, if any.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Key string `json:"key,omitempty"`

	// KeyOf is the record for which this object holds Key.
	//
	// +optional
	KeyOf *RecordRef `json:"keyOf,omitempty"`

	// Holder names the process that works on the operation. It decides nothing.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Holder string `json:"holder,omitempty"`

	// Step is the progress of the holder, in a short word of its own.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Step string `json:"step,omitempty"`

	// Target is the peer in which the object is created, set with the commit.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Target string `json:"target,omitempty"`

	// TargetUID is the UID of the target's object, set with the commit. It distinguishes
	// the object from a later one of the same name.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	TargetUID types.UID `json:"targetUID,omitempty"`

	// Payload is the data that the holder needs to finish the operation after a crash, at
	// most 1 MiB before base64.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1398104
	Payload []byte `json:"payload,omitempty"`

	// Outcome is the result of the operation, kept under Key for retries; at most 64 KiB
	// before base64.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=87384
	Outcome []byte `json:"outcome,omitempty"`

	// Began is when the operation began, for people.
	//
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:MaxLength=64
	Began string `json:"began"`

	// Ended is when the operation ended. Its retention begins then.
	//
	// +optional
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:MaxLength=64
	Ended string `json:"ended,omitempty"`

	// Write identifies the last write, so that a writer that lost the reply can find out
	// whether its own write was applied.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Write string `json:"write,omitempty"`
}

// RecordRef names one incarnation of a record.
type RecordRef struct {
	// Name is the record's name, the ID of its operation.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// UID is the record's metadata.uid.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`
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
