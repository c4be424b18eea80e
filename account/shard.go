// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"iter"
)

// Shard selects the keys of one replica of a program: *shard.Members of region/shard, or anything
// like it. Two replicas may own a key for a moment without harm: every write is a
// compare-and-swap or an apply of the same content.
type Shard interface {
	// Owns reports whether this replica owns the key. It does no I/O.
	Owns(key string) bool
	// Watch yields a number after each change of ownership, until ctx ends.
	Watch(ctx context.Context) iter.Seq[uint64]
}

func owns(s Shard, key string) bool { return s == nil || s.Owns(key) }

// resharded calls changed after each change of ownership, until ctx ends.
func resharded(ctx context.Context, s Shard, changed func()) {
	if s == nil {
		return
	}
	for range s.Watch(ctx) {
		changed()
	}
}
