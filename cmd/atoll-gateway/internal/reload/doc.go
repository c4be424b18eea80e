// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reload reads files again when they change: certificates, tokens and keys that are replaced while the gateway
// runs.
package reload
