// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package split divides workloads of an upstream, which runs none and learns what they are from its clusters, over real
// clusters that run them: splitter and syncers in one process, which is killed, and clusters that are lost, join and drain.
package split
