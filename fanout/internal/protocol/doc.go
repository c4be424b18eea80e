// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protocol is the fan-out protocol as a pure state machine.
//
// A Machine takes replies and returns commands. It does no I/O and uses no clock, randomness or
// goroutine. The runtime in package fanout and the tests that explore interleavings run the same
// code.
//
// An operation is a sequence of jobs, and a job is a sequence of phases. The tasks of a phase run
// in parallel, and each works in one peer or on the log. Jobs and tasks are types without state,
// each with the rules of one subject: acquireTask decides about an object that has the name
// already, removeJob about the order of a removal. The state is in Machine and in Strand, the state
// of one running task; both are plain data. A Change, the machine of a change of the membership, is
// built in the same way and runs operations of its own. Pure functions judge the objects, PeerSets
// and records that were read: judge, judgeStray, judgeRecord and the methods of Object.
//
// docs/fanout-specification.md states the guarantees of the protocol: at most one peer owns a name;
// a committed object has a guard or a replica in every other Active member; a committed object
// stays until its removal is committed; the endings committed and aborted are reported only with
// proof.
//
// The protocol does not guarantee progress without replies. Each attempt is a command of its own,
// and the runtime must not repeat a command by itself. So the runtime can classify each attempt as
// not applied, applied or unknown.
//
// # Words
//
// The comments use the terms of the specification, and these:
//
//   - strand: the state of one running task.
//   - quantum: the pause that one Sleep command makes. A lease is a number of quanta.
//   - heartbeat: a write without other effect, by which a process shows that it still works.
//   - term: the number of a home. Each later home of the object has a higher term. A home that
//     replaces a lost one gets the first term of a later generation (a range of terms).
//   - yield: a home that moves yields to a replica, and takes no update from then on. The replica is
//     elected: a process makes it the home.
//   - succession: the election of another home for an object whose home was lost with its peer.
//   - newcomer: the peer that a join or a rejoin makes a member.
//   - slot: the lock in a PeerSet that a change of the membership must hold. The anchor is the member
//     whose slot each change takes first.
//   - sub-operation: an operation that a change runs on one listed object.
//   - record: with "of the first release", the entry of an add in a central log, which decided the add.
package protocol
