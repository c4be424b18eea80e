// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package planetest provides real control planes to tests.
//
// A package that uses [Shared] or [SharedPods] needs
//
//	func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }
//
// which stops the shared planes after the last test. [New] starts a plane for one test, which may
// kill it, pause it or pass special flags.
//
// Tests that share planes use different namespaces ([Namespace]), and different names for
// cluster-wide objects. They must leave shared planes running and unpaused.
//
// With -short no real API server is started: tests that need one are skipped.
//
// If a test fails, its log names the log directories of its planes, and the directories are kept.
package planetest
