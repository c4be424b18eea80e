// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package atoll is the root of a toolkit for programs that work with many Kubernetes control planes as one: a name that
// only one of them may hold, an object that is the same in all, a request that goes straight to the right one, a workload
// that is divided over clusters and kept in step. It has no code itself.
//
//   - region: who the peers and regions are, how to reach them, whether they are well
//   - wal: a write-ahead log of operations, in one file; wal/kubelog keeps one in a
//     central plane that several coordinators share
//   - fanout: one change to all peers, with at most one owner of a name
//   - account: Accounts, the same in every peer
//   - router: which peer serves a region, and clients that go there as a given caller
//   - config: the CustomResourceDefinitions of all types, and how to install them
//   - region/regiontest, wal/waltest: servers and logs in memory, for tests of programs that use these packages
//
// Packages that do not need one another do not import one another; use one without the rest. Two small interfaces
// carry everything between them: region.API, the clients of one API server, and region.Directory, the peers.
package atoll
