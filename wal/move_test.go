// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package wal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
)

// A moved log is at its new path with all entries, and no longer at the old path.
func TestMove(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "old.db"), filepath.Join(dir, "ring", "deep", "new.db")
	f, err := wal.Open(from, wal.Options{})
	require.NoError(t, err)
	begun, err := f.Begin(t.Context(), wal.Entry{ID: "open", Key: "key", Data: []byte("data")})
	require.NoError(t, err)
	require.NoError(t, f.Move(t.Context(), to))

	_, err = f.Begin(t.Context(), wal.Entry{ID: "late"})
	require.ErrorIs(t, err, wal.ErrClosed)
	require.NoFileExists(t, from)
	_, err = wal.Open(from, wal.Options{Existing: true})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoFileExists(t, from, "a log that must exist is not created")
	_, err = wal.Open(filepath.Join(dir, "nowhere", "wal.db"), wal.Options{Existing: true})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoDirExists(t, filepath.Join(dir, "nowhere"))

	moved := open(t, to, wal.Options{Existing: true})
	found, err := moved.Find(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, begun, found)
}

// Move fails if a log or a damaged log exists at the target, or if the target cannot be created. The log stays
// usable at its old path.
func TestMoveRefused(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "old.db")
	f := open(t, from, wal.Options{LockTimeout: -1})

	other := filepath.Join(dir, "other.db")
	o := open(t, other, wal.Options{})
	err := f.Move(t.Context(), other)
	_, locked := errors.AsType[*wal.LockedError](err)
	require.True(t, locked, "%v", err)
	require.NoError(t, o.Close())
	require.ErrorIs(t, f.Move(t.Context(), other), fs.ErrExist)
	damaged := filepath.Join(dir, "damaged.db")
	require.NoError(t, os.WriteFile(damaged+".damaged-20260101T000000Z", nil, 0o600))
	require.ErrorIs(t, f.Move(t.Context(), damaged), fs.ErrExist)
	require.ErrorContains(t, f.Move(t.Context(), filepath.Join(other, "new.db")), "not a directory")

	_, err = f.Begin(t.Context(), wal.Entry{ID: "later"})
	require.NoError(t, err)
	_, err = wal.Open(damaged, wal.Options{Existing: true})
	_, corrupt := errors.AsType[*wal.CorruptError](err)
	require.True(t, corrupt, "a damaged log is not a missing one: %v", err)
}
