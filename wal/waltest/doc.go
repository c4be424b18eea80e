// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waltest contains the contract of [wal.Log] as tests, and a log in memory for tests of programs that use a
// Log.
//
// [Run] is for programs that implement or wrap a Log. It makes no assumption beyond the contract, for example about
// the format of versions, except that the retention time is longer than the test. It opens a log a second time: an
// exclusive log must refuse the second open; both handles of a shared log must see the same entries and be able to
// take them over from each other. So a wrapper fails if it hides that its log is shared.
//
// [Memory] passes Run, exclusive or shared, does no I/O, and can fail as a disk does. It is not durable and not for
// production.
package waltest
