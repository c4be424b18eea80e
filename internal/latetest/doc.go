// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package latetest lets watches bring what happened some time after it has, for tests of who works with copies that are
// behind.
package latetest
