// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mutants removes one rule at a time from the source of other packages and checks that a
// test of the package fails. It has tests only.
//
// Each package under test has one file with its table. TestMutants always checks that each change
// in the tables applies at exactly one place, that the result parses, and that the named tests
// exist.
//
// With ATOLL_MUTANTS, TestMutants also compiles and runs the mutants that the variable matches, a
// regular expression of "PACKAGE: RULE": "." matches all, "^wal:" those of one package. With
// ATOLL_MUTANTS_TESTS, it runs the tests that this variable matches instead of those of the tables;
// with "." it shows the first test of the package that fails. With ATOLL_DOCS, it writes the tests'
// failures to mutants-packages.md in the directory that this variable names.
//
// Guaranteed: the run fails if a mutant does not compile, if no test fails, or if the tests time
// out although the table does not list the mutant as hanging. Sources are never written: the
// compiler reads the mutant through an overlay.
//
// Not guaranteed: that rules outside the tables have tests.
package mutants
