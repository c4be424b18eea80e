// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stage connects an example to an upstream and three clusters, in memory or by kubeconfigs. The syncer of a cluster
// reaches it through a [Link], which the example can cut.
//
// Guaranteed: a closed Stage leaves no goroutine and no open connection.
//
// Not guaranteed: that the servers in memory run anything. An example plays the controllers of these clusters.
package stage
