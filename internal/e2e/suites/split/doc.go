// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package split divides workloads of an upstream over real clusters. The upstream runs no workloads
// and imports their types from the clusters. Splitter and syncers run in one process, which the
// tests kill. Clusters are lost, join and drain.
package split
