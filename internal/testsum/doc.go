// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command testsum runs go test, shows what go test shows, and counts.
//
//	testsum [-append FILE] ARGS...   go test ARGS, adding the counts to FILE
//	testsum -total FILE              why tests failed, in short, and the sum of what was added, "N passed, N failed, N skipped"
//	testsum -fuzz TIME PACKAGES...   every fuzz target of the packages, each for TIME
//
// Tests, subtests, examples and fuzz seeds count one each. A package that does not build, and one that dies, counts as
// one failure, and so does each test that it never finished. The exit code is 1 if anything failed.
package main
