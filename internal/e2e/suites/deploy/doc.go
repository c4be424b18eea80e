// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy applies the manifests of cmd/atoll-manager to real API servers, and runs the program
// with the rights that the manifests grant.
package deploy
