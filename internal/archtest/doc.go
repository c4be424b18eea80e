// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the rules for the structure of the source as functions, and the tests that
// apply them to this repository: which packages may import which, which modules the module depends
// on, and the form of a source file. docs/design/0001-house.md gives the reasons.
//
// A rule takes plain values and returns one sentence per violation, which names the place and the
// remedy.
package archtest
