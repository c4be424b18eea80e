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
package protocol
