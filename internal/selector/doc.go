// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selector reads the label selectors of objects without a Go type.
//
// Guaranteed: Read is pure and safe for concurrent use. Not guaranteed: that a faulty selector is reported.
package selector
