// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights defines the least rights that a peer must grant to programs that use it, without
// wildcards. Its functions are pure.
package rights
