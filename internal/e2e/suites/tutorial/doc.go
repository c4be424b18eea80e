// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tutorial runs the commands of docs/tutorial.md and docs/operate.md, on real API servers and in one shell for
// each page, and compares their output with that of the page.
package tutorial
