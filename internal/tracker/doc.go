// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracker lists the labels and annotations by which tools recognize objects that they
// applied. On a downstream object they would make a tool prune it.
package tracker
