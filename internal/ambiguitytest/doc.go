// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ambiguitytest makes the calls of each operation meet each ambiguity that a box between a
// coordinator and an API server can cause; see package boxtest. The same cases run against API
// servers in memory and real ones.
package ambiguitytest
