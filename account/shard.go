// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"iter"
)

// Shard says which keys a replica of a program works on: *shard.Members of
// region/shard, or anything like it. That two replicas believe for a moment to own
// a key is harmless: every write is a compare-and-swap or an apply of the same.
type Shard interface {
	// Owns says whether the key is this replica's. It does no I/O.
	Owns(key string) bool
	// Watch yields a number after each change of who owns what, until ctx ends.
	Watch(ctx context.Context) iter.Seq[uint64]
}

func owns(s Shard, key string) bool { return s == nil || s.Owns(key) }

// resharded calls changed after each change of who owns what, until ctx ends.
func resharded(ctx context.Context, s Shard, changed func()) {
	if s == nil {
		return
	}
	for range s.Watch(ctx) {
		changed()
	}
}
