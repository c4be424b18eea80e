// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command testsum runs go test, shows its usual output, and counts results.
//
//	testsum [-append FILE] ARGS...   go test ARGS, adding the counts to FILE
//	testsum -total FILE              why tests failed, in short, and the sum of the counts, "N passed, N failed, N skipped"
//	testsum -fuzz TIME PACKAGES...   every fuzz target of the packages, each for TIME
//
// Tests, subtests, examples and fuzz seeds count as one each. Each test that a crashed package did
// not finish counts as one failure. A package that fails without a failed or unfinished test, such
// as one that does not build, counts as one failure. The exit code is 1 if anything failed.
package main
