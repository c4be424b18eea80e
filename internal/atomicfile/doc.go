// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package atomicfile replaces files atomically.
package atomicfile
