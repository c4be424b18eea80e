// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracker knows the labels and annotations by which tools recognize what they applied. On a copy of an object in
// another cluster, a tool would take the copy for its own and prune it.
package tracker
