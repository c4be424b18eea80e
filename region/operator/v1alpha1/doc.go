// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API type of the group operator.kubecarrier.io:
// KubeCarrier, which describes one installation and whether it is the master of
// others.
//
// +kubebuilder:object:generate=true
// +groupName=operator.kubecarrier.io
package v1alpha1
