// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tutorial runs the commands of docs/tutorial.md in one shell, on real API servers, and compares their output
// with that of the page.
package tutorial
