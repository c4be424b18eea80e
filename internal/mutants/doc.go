// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mutants removes one rule at a time from the source of other packages and checks that a test of that package
// fails. It has tests only.
//
// Each package under test has one file with its table. TestMutants checks in every run that each change of the tables still
// applies at exactly one place, that the result parses, and that the tests which should notice it exist. ATOLL_MUTANTS also
// compiles and runs the mutants that match it, a regular expression of "PACKAGE: RULE": "." takes all, "^wal:" one package.
// ATOLL_MUTANTS_TESTS runs other tests than those of the tables, such as "." to find out which notice a mutant. With
// ATOLL_DOCS, what they report is written to docs/mutants-packages.md.
//
// Guaranteed: a mutant that does not compile fails the run, and so does one that no test notices, or that only a timeout
// notices unless the table says so. Sources are never written: the compiler reads the mutant through an overlay.
// Not guaranteed: that rules outside the tables have tests.
package mutants
