// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package waltest_test

import (
	"context"
	"fmt"

	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

func ExampleNewMemory() {
	ctx := context.Background()
	log := waltest.NewMemory()
	if _, err := log.Begin(ctx, wal.Entry{ID: "1", State: "begun"}); err != nil {
		fmt.Println(err)
		return
	}
	// The process dies here. The next process finds the open entry.
	for e, err := range log.Reopen().Open(ctx) {
		fmt.Println(e.ID, e.State, err)
	}
	// Output: 1 begun <nil>
}

// Two coordinators share a log. The second takes over an entry of the first; the next write of the first
// then fails.
func ExampleNewSharedMemory() {
	ctx := context.Background()
	first := waltest.NewSharedMemory()
	e, err := first.Begin(ctx, wal.Entry{ID: "1", Owner: "first", State: "begun"})
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := first.Attach()
	if err != nil {
		fmt.Println(err)
		return
	}
	for taken, err := range second.Open(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		taken.Owner = "second"
		if taken, err = second.Advance(ctx, taken); err == nil {
			fmt.Println("taken over by", taken.Owner)
		}
	}
	_, err = first.Advance(ctx, e)
	fmt.Println(err)
	// Output:
	// taken over by second
	// entry is stale
}
