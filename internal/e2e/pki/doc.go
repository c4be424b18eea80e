// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki makes certificates for suites: of servers at the loopback, and of clients.
package pki
