// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package regiontest is an API server in memory, so that real clients, informers, impersonation and watches run their
// real code in tests and examples.
package regiontest
