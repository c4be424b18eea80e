// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shard lets the replicas of a program share work: each key belongs to one of those that are alive.
//
// [Members] keeps a Lease for its replica in one namespace of a configuration plane and watches those of the others. Keys
// are given to live replicas by rendezvous hashing. No replica leads.
//
//	members, err := shard.New(plane, "atoll-system", "peers", shard.Options{Identity: podName})
//	go members.Start(ctx)
//	for range members.Watch(ctx) {
//		// Look at all keys again: work on those that members.Owns.
//	}
//
// # What is guaranteed
//
//   - All replicas that see the same live ones agree on the owner of every key. Keys are spread evenly, and one that joins
//     or leaves moves only the keys that it gets or had.
//   - A replica that stops takes its Lease along: its keys move at once. One that dies is found dead, and its keys move,
//     one lease after its last renewal.
//   - Clocks are never compared. A Lease is alive as long as its resourceVersion changes within its duration on the clock
//     of whoever looks, and renewTime is written for people only.
//   - Nobody is found dead by a replica that is blind itself: it must first see, in the same watch, a renewal of its own that
//     it began after the other's time was up. A watch that has silently stopped moves no keys.
//   - A replica that cannot renew its Lease, or was paused, owns nothing from the moment at which the others may take over:
//     Owns looks at the clock each time.
//   - Leases of replicas that died and never came back are deleted after ten times their duration.
//
// # What is not
//
//   - That a key has one owner at every moment. While replicas learn of a change, two may own a key, or none, for as long as
//     a watch event takes; a replica that begins work just before it is paused goes on after. Do only what may be done twice:
//     compare-and-swap, server-side apply.
//   - That keys stay where they are in an outage of the plane: each replica then owns nothing after one lease.
//   - Protection against those who may write Leases in the namespace.
//
// The rights that are needed in the namespace, on leases of coordination.k8s.io: create, delete, get, list, patch,
// watch.
package shard
