// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package central

// manyPeers is the number of peers in a test with many peers.
const manyPeers = 1000
