// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy applies to real API servers what examples/controllermanager deploys, and runs its program with the rights
// that this grants.
package deploy
