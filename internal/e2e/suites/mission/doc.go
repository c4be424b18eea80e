// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mission applies the manifests of the multi-region proposals and the transparent
// multi-cluster demo to a real kube-apiserver, and checks the effect of plain API calls by people
// and tools on objects under the fan-out protocol.
package mission
