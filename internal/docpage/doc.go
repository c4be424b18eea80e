// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docpage lets tests write the generated figures of the documentation.
//
// Guaranteed: nothing is written unless ATOLL_DOCS names the directory of the pages, and only the
// named section changes. Not guaranteed: any result if two tests write the same page at the same
// time.
package docpage
