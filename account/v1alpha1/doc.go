// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API types of the group catalog.kubecarrier.io:
// Account, an actor that is the same in every peer, and Region, which shows a
// tenant a region that it may use.
//
// An Account is under the fan-out protocol: one object is its home; the other
// peers hold replicas of the same revision or an earlier one. An Account that
// was applied without a claim is inert until a coordinator adopts it.
//
// +kubebuilder:object:generate=true
// +groupName=catalog.kubecarrier.io
package v1alpha1
