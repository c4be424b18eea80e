// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelog is a log of operations in a Kubernetes API server that several programs share: each entry is an
// Operation object (fanout.atoll.dev/v1alpha1) of a central plane.
//
//	kubectl get operations
//
// shows what is under way, since when and by whom.
//
// # What a Log guarantees
//
//   - The contract of [wal.Log] for a shared log. An entry decides nothing: what an operation of package fanout commits is
//     decided in the peers, whichever log it is in.
//   - Begin, Advance and End return nil only when the API server has said that the change is stored, or has shown it in a
//     quorum read.
//   - An ID and a key are known once, whoever begins them, at whatever moment: the ID is the name of the record, and a key
//     belongs to the object that is named after its hash. (The key "operation/ID" is held by the record of that ID itself
//     and costs nothing.) A record counts only once it has its key.
//   - Changes are compare-and-swap on the resourceVersion, so that two programs never both advance one entry.
//   - A lost answer is made up for by reading. Every write carries a token of its own, so that a repeated request
//     (client-go repeats what is answered with Retry-After) is not taken for another's.
//   - Takeover: a program that finds an entry at the same version for as long as it likes (a Coordinator of package fanout
//     waits one lease) writes itself into Owner by Advance. The former owner, should it go on, gets wal.ErrStale.
//   - Records of the first release, in which the record of an add was its commit point, are read (Log.Decision) until they
//     have ended. Nothing makes new ones.
//   - A Log holds nothing open and keeps nothing in memory. After a call that could not be settled, the next one begins
//     afresh: unlike a file, an API server can be asked again.
//
// A Log needs create, delete, get, list and patch on operations.fanout.atoll.dev in the central plane, and nothing else
// ("atollctl rbac --central" prints the role).
//
// # What it does not guarantee
//
//   - It does not answer while the API server does not. A call ends with [*InDoubtError] when Options.Timeout has passed
//     and it is not known whether its write was or will be applied. A begin in doubt may appear as an open entry later:
//     whoever finds it settles it, as after a crash.
//   - An ID must be a DNS subdomain, as names of objects are: IDs of package fanout are.
//   - Owner keeps only well-behaved programs out: every program that may write the objects may take an entry over, or
//     break it. Labels and annotations of the records belong to the log.
//   - A central plane restored from an old backup has forgotten what was begun since; the peers still have the claims.
package kubelog
