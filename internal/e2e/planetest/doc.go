// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package planetest gives real control planes to tests.
//
// A package that uses [Shared] or [SharedPods] needs
//
//	func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }
//
// which stops the shared planes after the last test. [New] starts a plane of the
// test's own, for tests that kill it, pause it or need special flags.
//
// Tests that share planes keep apart by namespaces ([Namespace]) and by names of
// their own for what has none. Shared planes must be left running and unpaused.
//
// With -short no real API server is started: tests that need one are skipped.
//
// If a test fails, the log directories of its planes are logged and kept.
package planetest
