// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rightstest lets a test see that roles suffice for what a program does, and that each right in them is used.
package rightstest
