// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package wal_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/atoll-dev/atoll/wal"
)

// overwrite writes bytes into the file of an open log, and returns a func that restores the old bytes.
func overwrite(t *testing.T, path string, at int, with []byte) (undo func()) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	before := make([]byte, len(with))
	_, err = file.ReadAt(before, int64(at))
	require.NoError(t, err)
	_, err = file.WriteAt(with, int64(at))
	require.NoError(t, err)
	return func() {
		_, err := file.WriteAt(before, int64(at))
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
}

// If the ID or the key of an entry is damaged while the log is open, a call with the damaged ID or key returns an
// error.
func TestDamagedNamesWhileOpen(t *testing.T) {
	for what, names := range map[string][2]string{"key": {"key-mmmm", "key-mmmn"}, "ID": {"ops-mmmm", "ops-mmmn"}} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "wal.db")
			f := open(t, path, wal.Options{})
			e, err := f.Begin(t.Context(), wal.Entry{ID: "ops-mmmm", Key: "key-mmmm"})
			require.NoError(t, err)
			log, err := os.ReadFile(path)
			require.NoError(t, err)
			for at := 0; ; at++ {
				next := bytes.Index(log[at:], []byte(names[0]))
				if next < 0 {
					break
				}
				at += next
				undo := overwrite(t, path, at, []byte(names[1]))
				if what == "key" {
					_, err = f.Find(t.Context(), names[1])
				} else {
					_, err = f.Advance(t.Context(), wal.Entry{ID: names[1], Version: e.Version})
				}
				require.Error(t, err, "%s at %d", names[1], at)
				undo()
			}
		})
	}
}

// A meta page that is damaged under an open log does not undo a commit silently.
func TestDamagedMetaPageWhileOpen(t *testing.T) {
	refused := 0
	for page := range 2 {
		path := filepath.Join(t.TempDir(), "wal.db")
		f, err := wal.Open(path, wal.Options{})
		require.NoError(t, err)
		_, err = f.Begin(t.Context(), wal.Entry{ID: "a", Key: "a"})
		require.NoError(t, err)
		_, err = f.Begin(t.Context(), wal.Entry{ID: "b", Key: "b"})
		require.NoError(t, err)
		overwrite(t, path, page*os.Getpagesize(), make([]byte, os.Getpagesize()))
		if _, err = f.Find(t.Context(), "b"); err != nil {
			require.NotErrorIs(t, err, wal.ErrNotFound, "page %d: the last commit is undone", page)
			refused++
		}
		_ = f.Close() // fails for a damaged file
	}
	require.Equal(t, 1, refused, "one of the pages is the newer one")
}

// A call that finds damage does not fail the calls that share its commit. No call is acknowledged without being
// stored.
func TestDamageThatOneCallMeets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	filled(t, path, 64)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	require.NoError(t, err)
	keys := 0
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		keys = int(tx.Bucket([]byte("idem")).Root()) //nolint:gosec // a small file
		return nil
	}))
	require.NoError(t, db.Close())
	require.NotZero(t, keys, "the keys have pages of their own")

	synctest.Test(t, func(t *testing.T) {
		f, err := wal.Open(path, wal.Options{})
		require.NoError(t, err)
		commits, release := 0, make(chan struct{})
		f.OnCommit(func(tx *bbolt.Tx) error {
			if commits++; commits == 1 {
				<-release
			}
			return tx.Commit()
		})
		var errs [3]error
		begin := func(i int, e wal.Entry) {
			go func() { _, errs[i] = f.Begin(t.Context(), e) }()
			synctest.Wait()
		}
		begin(0, wal.Entry{ID: "first"})
		overwrite(t, path, keys*os.Getpagesize()+8, []byte{0x77}) // overwrite the page's type
		begin(1, wal.Entry{ID: "plain"})
		begin(2, wal.Entry{ID: "keyed", Key: "new"})
		close(release)
		synctest.Wait()
		require.NoError(t, errs[0])
		require.NoError(t, errs[1])
		require.Error(t, errs[2])
		stored := map[string]bool{}
		for e, err := range f.Open(t.Context()) {
			stored[e.ID] = err == nil
		}
		require.True(t, stored["plain"])
		require.False(t, stored["keyed"])
		require.NoError(t, f.Close())
	})
}

// If the log is deleted before its database is opened, no empty log takes its place.
func TestNoLogIsMadeWithoutASchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	require.ErrorIs(t, wal.OpenStore(path), fs.ErrNotExist)
	require.NoFileExists(t, path)
}
