// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stilltest answers watches in which nothing happens, for tests with so many API servers that none may cost
// anything.
package stilltest
