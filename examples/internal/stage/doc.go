// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stage connects the examples with clusters to their API servers: an upstream and three clusters, in memory or by
// kubeconfigs. The connection between the upstream's programs and a cluster is a [Link] that an example can cut.
//
// Guaranteed: a closed Stage leaves no goroutine and no open connection.
//
// Not guaranteed: that the servers in memory run anything. An example plays the controllers of these clusters.
package stage
