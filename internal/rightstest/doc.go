// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rightstest lets a test check that roles suffice for a program, and that each right in
// them is used.
package rightstest
