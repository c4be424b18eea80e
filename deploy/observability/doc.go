// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observability tests the dashboards and rules of this folder. docs/operations.md is the page for operators.
//
// The tests need no server: they parse each expression with Prometheus's parser, compare its names with the lists of
// metrics, and evaluate the rules with Prometheus's engine, on series in which all is well and on series with one fault.
// The suite observability of internal/e2e runs the same files in a real Prometheus.
package observability
