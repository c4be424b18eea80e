// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights says what a peer must grant to those who coordinate it: as
// little as possible, and never a wildcard. Its functions are pure.
package rights
