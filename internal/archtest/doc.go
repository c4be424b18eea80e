// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the rules of the house as functions, and the test that applies them to this repository: who may
// import whom, what the module depends on, and how a source file looks. docs/design/0001-house.md gives the reasons.
//
// A rule takes plain values and returns one sentence per violation, naming the place and what would be right.
package archtest
