// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rivals describes objects of one name that were applied in several peers without a claim. All loops that report
// such objects use it, so that each of the objects shows the same text, whichever loop or peer reports it.
package rivals
