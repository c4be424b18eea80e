// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
)

// If an argument is missing, the error names it. Calls of a closed or zero File return an error that names this
// cause.
func TestArguments(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // ends a call that would block for ever
	defer cancel()
	dir := t.TempDir()
	closed, err := wal.Open(filepath.Join(dir, "log"), wal.Options{})
	require.NoError(t, err)
	open, err := wal.Open(filepath.Join(dir, "open"), wal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, open.Close()) })
	require.NoError(t, closed.Close())
	require.NoError(t, closed.Close(), "closing twice is not an error")

	type row struct {
		call, want string
		try        func() error
	}
	rows := []row{
		{"Open", "path: is empty", func() error { _, err := wal.Open("", wal.Options{}); return err }},
		{"Salvage from", "from: is empty", func() error { _, err := wal.Salvage(ctx, "", filepath.Join(dir, "new")); return err }},
		{"Salvage to", "to: is empty", func() error { _, err := wal.Salvage(ctx, filepath.Join(dir, "log"), ""); return err }},
		{"Backup", "path: is empty", func() error { return open.Backup(ctx, "") }},
		{"Move", "to: is empty", func() error { return open.Move(ctx, "") }},
		{"Begin without ID", "ID", func() error { _, err := open.Begin(ctx, wal.Entry{}); return err }},
		{"Advance without ID", "ID", func() error { _, err := open.Advance(ctx, wal.Entry{}); return err }},
	}
	calls := map[string]func(f *wal.File) error{
		"Begin":   func(f *wal.File) error { _, err := f.Begin(ctx, wal.Entry{ID: "a", Kind: "test"}); return err },
		"Advance": func(f *wal.File) error { _, err := f.Advance(ctx, wal.Entry{ID: "a", Kind: "test"}); return err },
		"End":     func(f *wal.File) error { return f.End(ctx, wal.Entry{ID: "a", Kind: "test"}, nil) },
		"Find":    func(f *wal.File) error { _, err := f.Find(ctx, "key"); return err },
		"Compact": func(f *wal.File) error { return f.Compact(ctx) },
		"Discard": func(f *wal.File) error { return f.Discard(ctx, "a") },
		"Verify":  func(f *wal.File) error { return f.Verify(ctx) },
		"Move":    func(f *wal.File) error { return f.Move(ctx, filepath.Join(dir, "moved")) },
		"Backup":  func(f *wal.File) error { return f.Backup(ctx, filepath.Join(dir, "backup")) },
		"Open": func(f *wal.File) error {
			for _, err := range f.Open(ctx) {
				return err
			}
			return nil
		},
	}
	for name, call := range calls {
		rows = append(rows,
			row{name + " of a closed File", wal.ErrClosed.Error(), func() error { return call(closed) }},
			row{name + " of a zero File", "not made by wal.Open", func() error { return call(new(wal.File)) }},
			row{name + " of a nil File", "not made by wal.Open", func() error { return call(nil) }})
	}
	rows = append(rows,
		row{"Close of a zero File", "not made by wal.Open", func() error { return new(wal.File).Close() }},
		row{"Close of a nil File", "not made by wal.Open", func() error { return (*wal.File)(nil).Close() }})
	for _, tc := range rows {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
