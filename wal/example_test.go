// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atoll-dev/atoll/wal"
)

// The program records an operation before its first effect, and ends the entry after its last
// effect.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "wal")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	ctx := context.Background()
	journal, err := wal.Open(filepath.Join(dir, "operations.db"), wal.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = journal.Close() }()

	e, err := journal.Begin(ctx, wal.Entry{ID: "2026-01-02-a1", Kind: "add", Key: "request-7", State: "begun"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for open, err := range journal.Open(ctx) { // do this first after a start
		fmt.Println("to finish:", open.ID, open.State, err)
	}
	if err := journal.End(ctx, e, []byte("added")); err != nil {
		fmt.Println(err)
		return
	}
	found, err := journal.Find(ctx, "request-7")
	fmt.Println("request-7:", string(found.Outcome), err)
	// Output:
	// to finish: 2026-01-02-a1 begun <nil>
	// request-7: added <nil>
}
