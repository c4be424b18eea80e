// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API types of the group kubecarrier.io:
// ServiceCluster, which configures the cluster of one region, and RegionClaim,
// by which a provider claims that region for a peer.
//
// A ServiceCluster is under the fan-out protocol: its name within an account's
// namespace is unique over all peers, and the other peers hold a guard of the
// same name, without payload. Types change compatibly within v1alpha1; fields
// of status are observations and never input.
//
// +kubebuilder:object:generate=true
// +groupName=kubecarrier.io
package v1alpha1
