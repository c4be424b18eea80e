// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docpage lets tests write the generated figures and pages of the documentation, and read the blocks of code in pages.
//
// Guaranteed: nothing is written unless ATOLL_DOCS names the directory of the pages, and Section
// changes only the named section. Not guaranteed: any result if two tests write the same page at
// the same time.
package docpage
