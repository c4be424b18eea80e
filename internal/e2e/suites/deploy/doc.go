// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy applies the manifests of examples/controllermanager to real API servers, and runs
// its program with the rights that they grant.
package deploy
