// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelog is a log of operations in a Kubernetes API server that several programs share: each entry is an
// Operation object (fanout.atoll.dev/v1alpha1) in a central plane.
//
//	kubectl get operations
//
// lists the operations in progress, their age and their owners.
//
// # What a Log guarantees
//
//   - The contract of [wal.Log] for a shared log. An entry has no decision: operations of package fanout are
//     committed in the peers, whichever log they are in.
//   - Begin, Advance and End return nil only if the API server has confirmed that the change is stored, or a quorum
//     read has shown it.
//   - An ID and a key are unique among all programs and at every moment: the ID is the name of the record, and an
//     object that is named after the hash of the key holds the key for the record. (A key of the form "operation/ID"
//     needs no such object: the record that is named ID holds it.) A record becomes an entry only once it holds its
//     key.
//   - Changes are compare-and-swap on the resourceVersion, so that two programs never both advance one entry.
//   - If the answer to a write is lost, the log reads the record. Every write has a token of its own, by which the log
//     recognizes a write of its own that is already stored, even if client-go has repeated the request (as it may do
//     after an answer with Retry-After).
//   - Takeover: a program that finds an entry unchanged for a time of its choice (a Coordinator of package fanout
//     waits one lease) writes itself into Owner by Advance. If the former owner continues, it gets wal.ErrStale.
//   - In the first release, the record of an add was the add's commit point. A Log reads such records until they have
//     ended (Log.Decision), and makes no new ones.
//   - A Log holds no connection or watch open and keeps no entries in memory. After a call in doubt, the next call
//     works: unlike a file, an API server can be read again.
//
// A Log needs create, delete, get, list and patch on operations.fanout.atoll.dev in the central plane, and nothing
// else ("atollctl rbac --central" prints the role).
//
// # Not guaranteed
//
//   - Availability while the API server does not answer. A call returns [*InDoubtError] when Options.Timeout has
//     passed and it is unknown whether its write was or will be applied. A begin in doubt may appear as an open entry
//     later: the program that finds this entry settles it, as after a crash.
//   - Arbitrary IDs. An ID must be a DNS subdomain, because it is the name of an object. Package fanout makes such IDs.
//   - Owner restrains well-behaved programs only: every program that may write the objects may take an entry over, or
//     break it. Labels and annotations of the records belong to the log.
//   - A central plane that is restored from an old backup has lost the operations begun since; the peers still have
//     the claims.
package kubelog
