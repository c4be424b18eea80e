// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waltest states the contract of [wal.Log] as tests, and offers a log in memory for tests of programs that use one.
//
// [Run] is for whoever implements a Log. It makes no assumption beyond the contract: neither how versions look nor how
// long ended entries are remembered, as long as that is longer than the test.
//
// [Memory] passes Run, writes nothing anywhere, and can fail as a disk does. It is not durable and not for production.
package waltest
