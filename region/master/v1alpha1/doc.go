// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API type of the group master.kubecarrier.io: Peer,
// which describes to a configuration plane how to reach one regional control plane.
//
// A Peer names a Secret and never holds credentials itself. Its status is an
// observation: an unreachable peer keeps its last known regions.
//
// +kubebuilder:object:generate=true
// +groupName=master.kubecarrier.io
package v1alpha1
