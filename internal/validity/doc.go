// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validity reads from client certificates and tokens in which time they are valid.
package validity
