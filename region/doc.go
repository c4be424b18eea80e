// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package region knows who the peers and regions are, how to reach them, and whether they are well.
//
// A peer is one regional control plane: an API server reached by one kubeconfig. A region is a place where services run,
// named by a provider (NAME.PROVIDER) and served by exactly one peer. A [Source] says which peers there are, a [Ring]
// keeps them connected and probes them, a [Directory] is how everything else sees them, and a [Conn] is the lasting
// connection to one.
package region
