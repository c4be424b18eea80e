// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart draws numbers of replicas over time as SVG: stacked areas, one for each cluster, lines such as limits, and
// marks for events.
//
// Guaranteed: the same chart gives the same bytes.
//
// Not guaranteed: that names are escaped or fit: they must be short, and free of characters that have a meaning in XML.
package chart
