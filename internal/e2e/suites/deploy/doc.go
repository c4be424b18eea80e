// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy applies the manifests of examples/controllermanager to real API servers, and runs
// the program of the example with the rights that the manifests grant.
package deploy
