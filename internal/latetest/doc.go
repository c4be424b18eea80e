// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package latetest delays watches, for tests of code that must work with stale caches.
package latetest
