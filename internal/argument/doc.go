// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package argument detects arguments that are nil behind an interface.
package argument
