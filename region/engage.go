// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import "context"

// Engage runs fn once for each peer for as long as the peer is in d: fn's context ends when it leaves, not when its
// credentials rotate. An fn that returns early is started again after a back-off. Engage returns when ctx has ended and
// every fn has returned.
func Engage(ctx context.Context, d Directory, fn func(context.Context, *Conn) error) error {
	return nil
}
