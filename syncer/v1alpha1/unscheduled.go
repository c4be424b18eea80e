// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// UnscheduledAnnotationPrefix and the name of a SyncTarget form the annotation with the number of a workload's pods
// that find no node in that cluster: an Unscheduled in JSON. The syncer writes it if its options ask for the count,
// and removes it when no such pod is left.
const UnscheduledAnnotationPrefix = "unscheduled.syncer.atoll.dev/"

// Unscheduled is the number of a workload's pods that find no node in a cluster.
//
// +kubebuilder:object:generate=false
type Unscheduled struct {
	// Pods is the number of pods.
	Pods int64 `json:"pods"`
	// Message is the scheduler's message for one of them. It is not updated if only its numbers change.
	Message string `json:"message"`
}
