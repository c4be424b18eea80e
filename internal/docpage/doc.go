// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docpage lets tests write the figures that the documentation shows.
//
// Guaranteed: nothing is written unless ATOLL_DOCS names the directory of the pages, and nothing but the section that is
// named changes. Not guaranteed: anything if two tests write the same page at the same time.
package docpage
