// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stilltest answers watches without events, for tests with so many API servers that each
// must be cheap.
package stilltest
