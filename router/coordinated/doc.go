// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package coordinated lets an apiserver.Handler run the writes of registered kinds, such as Accounts and
// ServiceClusters, as operations of a fanout.Coordinator.
//
//	ops, err := fanout.New(ring, log, fanout.Options{Kinds: account.Kinds()})
//	...
//	joint, err := coordinated.New(ring, ops)
//	...
//	handler, err := apiserver.New(routes, single, apiserver.Options{Fanout: joint})
//
// The program runs Coordinator.Start beside the server: it settles operations in doubt, sweeps, and finishes removals.
// The coordinator writes with its own credentials. It needs the rights that "atollctl rbac" prints.
//
// # Guaranteed
//
//   - An operation is reported as committed only if the Coordinator reports that. An outcome that is not known yet is a
//     504 (Timeout).
//   - The text of an error for the caller names peers only through the function that the Handler passes.
//
// # Not guaranteed
//
//   - Find is a read of each peer, one at a time per peer. Another write may come between it and the operation. The
//     Coordinator decides.
package coordinated
