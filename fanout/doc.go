// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fanout adds, changes and removes objects in all peers together. An object exists either
// once, under a name that only one peer may own (a ServiceCluster; the other peers hold guards of
// the name), or everywhere, with the same content in each peer (an Account; one peer holds the
// home, the others replicas). The package needs no lock service, no clock and no central component.
// A reservation is the object itself, under its final name; one conditional write in one peer is
// the commit.
//
// A Coordinator journals each operation before its first effect, works on the peers in
// parallel, and finishes what a crash left open: its own operations from its log, those of any
// coordinator from the objects in the peers. Any number of Coordinators may run, in any number
// of processes; they need not know one another.
//
// # Guarantees
//
//   - At most one peer owns a name. Every Active member has the object, a guard or a replica of
//     each committed name, so a name that is absent in any one Active member is free.
//   - A committed operation stays in effect until a removal.
//   - Committed and aborted are reported only with proof. Until then the error is an
//     InDoubtError. The error of an operation that may have been in effect for a while wraps
//     ErrEnded.
//   - A delete requires the UID and resourceVersion that were read. A Coordinator never deletes
//     an object that a person applied without a claim (the field that names the operation).
//   - Two replicas of one revision of an object have the same content. The revision of a replica
//     is not above that of its primary, and never falls.
//   - A Coordinator sends no write of an operation to a peer before the log has the operation,
//     except the dry run of a guard.
//   - The payload of an object that exists once is in one peer: guards carry their claim and the
//     fields that Kind.Guard fills in.
//   - A plain delete of the primary of an object that exists everywhere only requests its removal.
//     Unless a person releases the removal, no replica is deleted while the object's namespace
//     holds an object, while a member cannot report whether the namespace holds one, or while more
//     removals are requested than Options.RemovalCap allows. See Hold and
//     Coordinator.ReleaseRemoval.
//   - A Coordinator uses the answers of a cluster only if the ring knows that cluster under the
//     peer's name. The kube-system UID, the ring ID and the cluster's own PeerSet identify it. The
//     Coordinator treats another cluster as an unreachable peer (WrongPeerError), and writes
//     nothing to it. See Identity.Peers and Identity.Recognize.
//
// # Membership
//
// Coordinator.Join, Leave, ForceRemove and Comeback change the members, one change at a time,
// while operations continue. Configure a newcomer in one coordinator, join it there, and then
// configure it in the others. Remove a peer from the configurations after it has left. A
// coordinator rejects an add if its configured peers are not the members.
//
// The guarantees above hold under crashes at any moment, lost and late replies, stopped or skewed
// clocks and rivals. docs/fanout.md introduces the protocol, docs/fanout-specification.md has its
// steps and reasons, and the package's tests explore it.
//
// # Limits
//
//   - An add needs every peer: if one does not answer, the add fails without effect, or waits if
//     AddOptions.Unreachable is Wait. An operation whose target is lost in the middle of its
//     commit is in doubt until the target answers.
//   - A clone of a cluster cannot be distinguished from the cluster. A process that reaches
//     only peers of another ring takes that ring for its own.
//   - Readers of an object that exists everywhere may see two revisions at one moment in two
//     peers.
//   - Clocks order rivals, date events in texts, and measure leases and deadlines. A wrong clock
//     can make an operation wait longer or end without effect, but not violate a guarantee.
//   - If an object without a claim has a name, for example because a person applied it, an Add
//     under this name fails with a HeldError until the object is adopted (see Adopt) or gone.
package fanout
