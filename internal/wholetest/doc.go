// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wholetest measures the time that splitter and syncers take to bring Deployments from an
// upstream into clusters, and compares it with bare loops that write the same objects, on any API
// servers.
package wholetest
