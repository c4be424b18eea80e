// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package join lets clusters join a real API server with tokens, with the certificates of a real kube-controller-manager:
// once, twice, late, for another name, at once, and after the SyncTarget is gone.
package join
