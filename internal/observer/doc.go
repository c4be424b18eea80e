// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observer composes Observers: structs whose fields are funcs that a package calls on events. Each func may be nil.
//
// The funcs of this package do no I/O, keep nothing, and are safe for concurrent use.
package observer
