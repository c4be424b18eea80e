// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package wal_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
)

func TestDiscard(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	entries := filled(t, path, 12)
	damage(t, path, "operation-005\x01", 40) // an open entry
	damage(t, path, "operation-008\x01", 40) // an ended entry
	damage(t, path, "operation-009\x01", 40)
	damage(t, path, "request-009\x01", 25) // the entry of the line above, and its key
	damage(t, path, "request-010\x01", 25) // only a key
	f := open(t, path, wal.Options{})
	require.Error(t, f.Verify(t.Context()))
	require.ErrorIs(t, f.Discard(t.Context(), "operation-006"), wal.ErrNotDamaged)
	require.ErrorIs(t, f.Discard(t.Context(), "operation-000"), wal.ErrNotDamaged)
	require.ErrorIs(t, f.Discard(t.Context(), "operation-999"), wal.ErrNotFound)
	for id, key := range map[string]string{"operation-005": "request-005", "operation-008": "request-008"} {
		require.NoError(t, f.Discard(t.Context(), id))
		require.ErrorIs(t, f.Discard(t.Context(), id), wal.ErrNotFound)
		_, err := f.Find(t.Context(), key)
		require.ErrorIs(t, err, wal.ErrNotFound)
	}
	require.NoError(t, f.Discard(t.Context(), "operation-009"))
	require.NoError(t, f.Discard(t.Context(), "request-009"))
	require.ErrorIs(t, f.Discard(t.Context(), "request-009"), wal.ErrNotFound)
	require.NoError(t, f.Discard(t.Context(), "request-010"))
	require.ErrorIs(t, f.Discard(t.Context(), "request-010"), wal.ErrNotDamaged)
	found, err := f.Find(t.Context(), "request-010")
	require.NoError(t, err)
	require.Equal(t, entries["operation-010"], found)
	require.NoError(t, f.Verify(t.Context()))
	delete(entries, "operation-005")
	delete(entries, "operation-009")
	require.Equal(t, entries, collect(t, f))
	_, err = f.Begin(t.Context(), wal.Entry{ID: "operation-005", Key: "request-005"})
	require.NoError(t, err)
}

// If one page is unreadable, Salvage copies the entries on other pages to a new log, and does not change the damaged
// file.
func TestSalvage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "wal.db")
	entries := filled(t, path, 60)
	image, err := os.ReadFile(path)
	require.NoError(t, err)
	page := newestPage(t, path, "operation-030\x01")
	image[page+8] = 0x77 // overwrite the page's type
	require.NoError(t, os.WriteFile(path, image, 0o600))
	_, err = wal.Open(path, wal.Options{})
	c, ok := errors.AsType[*wal.CorruptError](err)
	require.True(t, ok, "%v", err)

	result, err := wal.Salvage(t.Context(), c.SetAside, path)
	require.NoError(t, err)
	require.NotEmpty(t, result.Damage)
	require.Positive(t, result.Ended)
	kept, err := os.ReadFile(c.SetAside)
	require.NoError(t, err)
	require.True(t, bytes.Equal(image, kept), "the damaged file was changed")

	f := open(t, path, wal.Options{})
	found := collect(t, f)
	require.Len(t, found, result.Open)
	require.Greater(t, len(found), len(entries)/2)
	require.Less(t, len(found), len(entries))
	for id, e := range found {
		require.Equal(t, entries[id], e)
		byKey, err := f.Find(t.Context(), e.Key)
		require.NoError(t, err)
		require.Equal(t, e, byKey)
		next, err := f.Advance(t.Context(), e)
		require.NoError(t, err)
		for _, other := range entries {
			require.NotEqual(t, other.Version, next.Version)
		}
	}
	_, err = wal.Salvage(t.Context(), c.SetAside, path)
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = wal.Salvage(t.Context(), path, filepath.Join(dir, "other.db"))
	_, ok = errors.AsType[*wal.LockedError](err)
	require.True(t, ok, "%v", err)
}

func TestSalvageRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("dear diary"), 0o600))
	to := filepath.Join(dir, "to.db")
	_, err := wal.Salvage(t.Context(), text, to)
	_, ok := errors.AsType[*wal.SchemaError](err)
	require.True(t, ok, "%v", err)
	_, err = wal.Salvage(t.Context(), filepath.Join(dir, "nothing"), to)
	require.ErrorIs(t, err, fs.ErrNotExist)

	path := filepath.Join(dir, "wal.db")
	filled(t, path, 12)
	image, err := os.ReadFile(path)
	require.NoError(t, err)
	copy(image[16:], make([]byte, 64))
	copy(image[pageSize+16:], make([]byte, 64))
	image[16+3] = 1
	image[8] = 4
	copy(image[16:], []byte{0xED, 0xDA, 0x0C, 0xED}) // only bbolt's magic number
	require.NoError(t, os.WriteFile(path, image, 0o600))
	_, err = wal.Salvage(t.Context(), path, to)
	_, ok = errors.AsType[*wal.CorruptError](err)
	require.True(t, ok, "%v", err)
	require.NoFileExists(t, to)
}

// newestPage returns the offset of the page that contains the text what, in the newest tree.
func newestPage(t *testing.T, path, what string) int {
	t.Helper()
	image, err := os.ReadFile(path)
	require.NoError(t, err)
	page := -1
	for _, at := range usedBytes(t, path) {
		if bytes.HasPrefix(image[at:], []byte(what)) {
			page = at / pageSize * pageSize
		}
	}
	require.Positive(t, page)
	return page
}
