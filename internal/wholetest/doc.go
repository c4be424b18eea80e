// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wholetest measures the time that splitter and syncers take to bring Deployments from an
// upstream into clusters. It compares this time with the time of bare loops that write the same
// objects. It works with any API servers.
package wholetest
