// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storedtest compares the names that installations store with a list in a file, for tests.
//
// It guarantees that the test fails if the program no longer stores a name of the list, whatever the environment. It
// does not find the names in the source.
package storedtest
