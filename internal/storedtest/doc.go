// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storedtest compares the names that installations store with a list in a file, for tests.
//
// It guarantees that a name which is missing fails the test, whatever the environment. It does not find the names.
package storedtest
