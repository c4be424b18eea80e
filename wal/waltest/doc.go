// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waltest states the contract of [wal.Log] as tests, and offers a log in memory for tests of programs that use one.
//
// [Run] is for programs that implement or wrap a Log. It makes no assumption beyond the contract: neither how versions
// look nor how long ended entries are remembered, as long as that is longer than the test. It opens a log a second time:
// an exclusive log must refuse that, and of a shared one both handles must see the same entries and take them over from
// each other. So a wrapper that hides that its log is shared fails.
//
// [Memory] passes Run, exclusive or shared, writes nothing anywhere, and can fail as a disk does. It is not durable and
// not for production.
package waltest
