// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fanout changes all peers together: a name that only one peer may have
// (a ServiceCluster), or an object that is the same in each (an Account), with
// no lock service, no clock and no centre. Reservations are the objects
// themselves, under their final names; one conditional write in one peer is the
// commit.
//
// A Coordinator journals each operation before its first effect, works on the
// peers in parallel, and finishes what a crash left behind: its own operations
// from its log, everybody's from what stands in the peers. Any number of
// Coordinators may run, in any number of processes, that know nothing of one
// another.
//
// # What is guaranteed
//
//   - At most one peer owns a name. What is committed is guarded in every peer,
//     so "nothing here" in any one peer proves that the name is free.
//   - A committed operation stays in effect until a removal.
//   - Committed and aborted are said only with proof. What cannot be known yet is
//     an InDoubtError, and what may have been in effect for a while wraps
//     ErrEnded.
//   - Only what was read is deleted, by UID and resourceVersion. An object that a
//     person applied without a claim is never deleted.
//   - Replicas of an object that exists everywhere never disagree within a
//     revision, never run ahead of their primary and never go back.
//   - Nothing is sent to a peer before the log has the operation, but for a dry
//     run of its guard.
//   - What exists once has its payload in one peer: guards carry their claim and
//     what Kind.Guard fills in.
//   - A plain delete of the primary of an object that exists everywhere is a request:
//     no replica goes while something lives in the object's namespace, while a member
//     cannot say whether something does, or while more are requested than
//     Options.RemovalCap allows. See Hold and Coordinator.ReleaseRemoval.
//   - What a cluster holds or lacks counts only if it is the one that the ring knows
//     under the peer's name, by kube-system UID, ring ID and its own PeerSet. Another
//     one counts as a peer that does not answer (WrongPeerError), and nothing is
//     written there. See Coordinator.Identities and Coordinator.Recognize.
//
// # Peers come and go
//
// Coordinator.Join, Leave, ForceRemove and Comeback change who the members are,
// one change at a time, while operations go on. One coordinator has a newcomer
// configured and joins it; configure it in the others then. Take a peer out of the
// configurations when it has left. An add is refused by a coordinator whose
// configured peers are not the members.
//
// These hold under crashes at any moment, lost and late replies, stopped or
// skewed clocks and rivals; docs/fanout.md says why, and the package's tests
// explore it.
//
// # What is not
//
//   - An add needs every peer: one that does not answer makes it fail, without
//     effect. An operation whose target is lost in the middle of its commit is
//     in doubt until the target answers.
//   - A clone of a cluster is not told from the cluster, and a process all of whose
//     reachable peers are of one other ring believes that ring.
//   - Readers of an object that exists everywhere may see two revisions at one
//     moment in two peers.
//   - Clocks order rivals and tell people since when; they decide nothing else,
//     so a wrong clock can make an operation wait longer, never be wrong.
//   - An operation of an object without a claim, such as a person's, begins only
//     when the object is gone.
package fanout
