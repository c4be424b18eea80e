// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package account

// manyPeers is how many a test takes that is about many.
const manyPeers = 1000
