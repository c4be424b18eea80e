// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ambiguitytest lets each call of each operation meet each ambiguity that
// a box between a coordinator and an API server can cause, see package boxtest.
// The same list runs over API servers in memory and over real ones.
package ambiguitytest
