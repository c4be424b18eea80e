// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package applications syncs forty applications, which have the shapes of widely used charts, from an
// upstream to a cluster, and compares each object with its downstream object.
package applications
