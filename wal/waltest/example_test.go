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
	// The process dies here; the next one finds what was begun.
	for e, err := range log.Reopen().Open(ctx) {
		fmt.Println(e.ID, e.State, err)
	}
	// Output: 1 begun <nil>
}
