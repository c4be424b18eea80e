// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// KubeCarrierConditionType is the type of a condition of a KubeCarrier.
type KubeCarrierConditionType string

// KubeCarrierConditionReason is why such a condition has its status.
type KubeCarrierConditionReason string

const (
	// KubeCarrierConditionReady shows whether the installation works.
	//
	// True: all its parts run (reason Complete).
	// False: a part does not run (Incomplete), or it is being removed (Removing).
	// Unknown: nothing was observed yet (Pending).
	KubeCarrierConditionReady KubeCarrierConditionType = "Ready"
)

const (
	// KubeCarrierReasonComplete: all parts run.
	KubeCarrierReasonComplete KubeCarrierConditionReason = "Complete"
	// KubeCarrierReasonIncomplete: a part does not run; the message names it.
	KubeCarrierReasonIncomplete KubeCarrierConditionReason = "Incomplete"
	// KubeCarrierReasonRemoving: the installation is being removed.
	KubeCarrierReasonRemoving KubeCarrierConditionReason = "Removing"
	// KubeCarrierReasonPending: nothing was observed yet.
	KubeCarrierReasonPending KubeCarrierConditionReason = "Pending"
)
