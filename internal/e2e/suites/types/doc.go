// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package types tests the transfer of types between real API servers: built-in types as CRDs, and
// the cases in which that is impossible.
package types
