// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shard divides work among the replicas of a program: each key belongs to one live replica.
//
// [Members] maintains a Lease for its replica in one namespace of a configuration plane and watches the Leases of the
// others. Rendezvous hashing assigns keys to live replicas. There is no leader.
//
//	members, err := shard.New(plane, "atoll-system", "peers", shard.Options{Identity: podName})
//	go members.Start(ctx)
//	for range members.Watch(ctx) {
//		// Check all keys again: work on those that members.Owns.
//	}
//
// # Guaranteed
//
//   - Replicas that see the same live replicas agree on the owner of every key. Keys are distributed evenly, and a replica
//     that joins or leaves moves only the keys that it gets or had.
//   - A replica that stops deletes its Lease: its keys move at once. The keys of a replica that dies move one lease after its
//     last renewal.
//   - Clocks are never compared. A Lease is live while its resourceVersion changes within its duration, by the observer's
//     clock. renewTime is for people only.
//   - A replica with a broken watch declares no other replica dead. Before it declares another replica dead, it must
//     begin a renewal of its own Lease after the other's deadline, and then observe this renewal in the same watch. A
//     watch that has silently stopped moves no keys.
//   - A replica that cannot renew its Lease, or was paused, owns nothing from the moment when the others may take over: Owns
//     checks the clock on each call.
//   - Leases of dead replicas are deleted after ten times their duration.
//
// # Not guaranteed
//
//   - That a key always has exactly one owner. While a change propagates, for the time of a watch event, two replicas may own
//     a key, or none; a replica that is paused right after it started work continues afterwards. Do only work that is safe
//     to do twice: compare-and-swap, server-side apply.
//   - That keys keep their owners in an outage of the plane: after one lease each replica owns nothing.
//   - Protection against other clients that may write Leases in the namespace.
//
// Required rights in the namespace, on leases of coordination.k8s.io: create, delete, get, list, patch, watch.
package shard
