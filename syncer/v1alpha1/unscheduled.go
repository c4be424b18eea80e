// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// UnscheduledAnnotationPrefix and the name of a SyncTarget make the annotation that says of a workload how many of its pods
// find no node in that cluster: an Unscheduled in JSON. It is there while there are some, if the syncer is told to count
// them.
const UnscheduledAnnotationPrefix = "unscheduled.syncer.atoll.dev/"

// Unscheduled says how many pods of a workload find no node in a cluster.
//
// +kubebuilder:object:generate=false
type Unscheduled struct {
	// Pods is how many.
	Pods int64 `json:"pods"`
	// Message is what the scheduler says of one of them. The numbers in it are of the time when it was written: it is not
	// written anew because of them.
	Message string `json:"message"`
}
