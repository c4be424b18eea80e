// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logtest lets tests read log lines.
//
// Guaranteed: Await returns when a line that contains all parts has been logged, whether before or
// after the call.
//
// Not guaranteed: which lines are logged, or how often.
package logtest
