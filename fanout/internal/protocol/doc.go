// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protocol is the fan-out protocol as a pure state machine.
//
// A Machine is told what happened and answers with commands; it does no I/O and
// knows no clock, randomness or goroutine. The runtime in package fanout and
// the tests that explore interleavings run this very code.
//
// What it promises is written in docs/fanout.md: at most one peer owns a name;
// what is committed is guarded in every peer; an acknowledged commit stays
// until a removal; committed and aborted are said only with proof.
//
// It does not promise progress without replies, and it never asks for a
// command's repetition by itself: each attempt is its own command, so that the
// runtime can classify it as not applied, applied or unknown.
package protocol
