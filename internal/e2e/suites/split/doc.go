// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package split divides workloads of an upstream, which runs none and imports their types from its
// clusters, over real clusters that run them. Splitter and syncers run in one process, which is
// killed; clusters are lost, join and drain.
package split
