// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"iter"
)

// Shard selects the keys of one replica of a program. *shard.Members of package region/shard implements it. In the
// Options of a loop, nil stands for a program with one replica, which owns every key. Two replicas may own a key for a
// moment without harm: every write is a compare-and-swap, or an apply of the same content.
type Shard interface {
	// Owns reports whether this replica owns the key. It does no I/O.
	Owns(key string) bool
	// Watch yields a generation number after each change of ownership, until ctx ends. Loops do not use the number.
	Watch(ctx context.Context) iter.Seq[uint64]
}
