// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"iter"
)

// shard has the methods of region.Shard that loops use. A nil shard owns every key.
type shard interface {
	Owns(key string) bool
	Watch(ctx context.Context) iter.Seq[uint64]
}

// OwnsKey reports whether a replica with shard s owns the key.
func OwnsKey(s shard, key string) bool { return s == nil || s.Owns(key) }

// Resharded calls changed after each change of ownership, until ctx ends. With a nil shard it returns at once.
func Resharded(ctx context.Context, s shard, changed func()) {
	if s == nil {
		return
	}
	for range s.Watch(ctx) {
		changed()
	}
}
