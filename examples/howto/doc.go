// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package howto has the code of docs/extend.md, docs/embed.md and docs/testing.md. Each of its tests is a program on its
// own, which uses API servers in memory. Copy one into a folder of your module, and run it by go test.
package howto
