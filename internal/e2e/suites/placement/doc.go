// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement holds the suite of packages splitter/placement and splitter on a real API server without controllers:
// the two meet there, and nobody else.
package placement
