// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backoff has the delays between attempts that fail: they double up to a limit. They have no jitter; a caller
// whose processes must not retry in step adds its own.
package backoff
