// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracker lists the labels and annotations by which tools recognize objects that they
// applied. If a downstream object had such a label or annotation, the tool would prune the object.
package tracker
