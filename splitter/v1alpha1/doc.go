// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API types of the group splitter.atoll.dev:
// ClusterDaemonSet, which runs a workload on every chosen cluster,
// PlacementPolicy and ClusterPlacementPolicy, which choose the clusters that
// workloads are divided over, and WorkloadType, which declares a type of
// workloads.
//
// +kubebuilder:object:generate=true
// +groupName=splitter.atoll.dev
package v1alpha1
