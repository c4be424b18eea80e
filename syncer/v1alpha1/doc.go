// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API type of the group workload.kcp.io: SyncTarget,
// a cluster whose objects a syncer keeps in step with an upstream API server.
//
// +kubebuilder:object:generate=true
// +groupName=workload.kcp.io
package v1alpha1
