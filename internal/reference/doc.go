// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reference makes the reference pages docs/evidence/errors.md and docs/evidence/crds.md from the sources of
// the repository.
//
// The tests of this package fail if a page is not current; "make reference" writes both pages. Guaranteed: equal sources
// make equal pages. Not guaranteed: sources are parsed and not type-checked, so an error that gets its method Error from an
// embedded type is not found.
package reference
