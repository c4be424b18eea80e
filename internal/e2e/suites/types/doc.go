// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package types carries types from one real API server to another: built-in types as CRDs, and what stands in the way.
package types
