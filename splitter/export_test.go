// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

// Tie lets the reference break ties as Divide does.
var Tie = tie
