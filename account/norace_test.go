// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package account

// manyPeers is the number of peers in tests with many peers.
const manyPeers = 1000
