// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mission applies what the multi-region proposals and the transparent
// multi-cluster demo print to a real kube-apiserver, and checks what people and
// tools may do there to objects that are under the fan-out protocol.
package mission
