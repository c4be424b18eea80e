// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ending ends the programs of this repository on signals, all in the same way.
package ending
