// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wholetest measures Deployments on their way from an upstream into clusters, with splitter and syncers, and the
// same objects as a bare loop writes them, on any API servers.
package wholetest
