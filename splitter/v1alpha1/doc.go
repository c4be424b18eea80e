// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API types of the group splitter.atoll.dev:
// ClusterDaemonSet, which runs a workload on every chosen cluster, and
// PlacementPolicy, which chooses the clusters that workloads are divided over.
//
// +kubebuilder:object:generate=true
// +groupName=splitter.atoll.dev
package v1alpha1
