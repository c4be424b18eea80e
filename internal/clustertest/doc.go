// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustertest has a list of clusters that a test changes.
//
// Guaranteed: a Watch yields the last list that was set. Not guaranteed: that it yields each list, if several are set at
// once.
package clustertest
