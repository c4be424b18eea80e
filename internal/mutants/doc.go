// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mutants removes one rule at a time from the source of other packages and checks that a
// test of the package fails. It has tests only.
//
// Each package under test has one file with its table. TestMutants always checks that each change
// in the tables applies at exactly one place, that the result parses, and that the named tests
// exist.
//
// ATOLL_MUTANTS also compiles and runs the mutants that match it, a regular expression of "PACKAGE:
// RULE": "." runs all, "^wal:" one package. ATOLL_MUTANTS_TESTS runs other tests than those of the
// tables, such as "." to find out which tests fail. With ATOLL_DOCS, the tests' failures are
// written to docs/evidence/mutants-packages.md.
//
// Guaranteed: the run fails if a mutant does not compile, if no test fails, or if the tests only
// time out and the table does not allow that. Sources are never written: the compiler reads the
// mutant through an overlay.
//
// Not guaranteed: that rules outside the tables have tests.
package mutants
