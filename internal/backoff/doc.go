// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backoff computes the delays between retries: they double up to a limit. They have no jitter; a caller whose
// processes must not retry at the same time adds jitter itself.
package backoff
