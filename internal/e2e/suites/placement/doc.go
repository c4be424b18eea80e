// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement tests packages splitter/placement and splitter together, without other
// controllers, on a real API server.
package placement
