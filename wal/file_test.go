// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package wal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/atoll-dev/atoll/internal/maintest"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	maintest.Main(m)
}

// open opens a log. When the test ends, it closes the log and checks the file by Verify and by
// bbolt.
func open(t testing.TB, path string, opts wal.Options) *wal.File {
	t.Helper()
	f, err := wal.Open(path, opts)
	require.NoError(t, err)
	t.Cleanup(func() { sound(t, f, path) })
	return f
}

// sound closes f and checks that its file is undamaged.
func sound(t testing.TB, f *wal.File, path string) {
	t.Helper()
	require.NoError(t, f.Close())
	checkFile(t, path)
}

// checkFile checks a closed log.
func checkFile(t testing.TB, path string) {
	t.Helper()
	again, err := wal.Open(path, wal.Options{})
	require.NoError(t, err)
	require.NoError(t, again.Verify(context.Background()))
	require.NoError(t, again.Close())
	checkBolt(t, path)
}

func checkBolt(t testing.TB, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	require.NoError(t, err)
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			return err
		}
		return nil
	}))
	require.NoError(t, db.Close())
}

func TestConformance(t *testing.T) {
	waltest.Run(t, func(t *testing.T) waltest.Opener {
		path := filepath.Join(t.TempDir(), "wal.db")
		t.Cleanup(func() { checkFile(t, path) })
		return func(t *testing.T) (wal.Log, error) {
			f, err := wal.Open(path, wal.Options{LockTimeout: time.Millisecond})
			if err == nil {
				t.Cleanup(func() { require.NoError(t, f.Close()) })
			}
			return f, err
		}
	})
}

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "down", "wal.db")
	f, err := wal.Open(path, wal.Options{})
	require.NoError(t, err)
	a, err := f.Begin(t.Context(), wal.Entry{ID: "a", Key: "k", Data: make([]byte, wal.MaxData)})
	require.NoError(t, err)
	b, err := f.Begin(t.Context(), wal.Entry{ID: "b"})
	require.NoError(t, err)
	require.NoError(t, f.End(t.Context(), b, make([]byte, wal.MaxOutcome)))
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	_, err = f.Begin(t.Context(), wal.Entry{ID: "c"})
	require.ErrorIs(t, err, wal.ErrClosed)

	f = open(t, path, wal.Options{})
	found, err := f.Find(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, a, found)
	_, err = f.Begin(t.Context(), wal.Entry{ID: "b"})
	require.ErrorIs(t, err, wal.ErrExists)
}

func TestLimits(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "wal.db"), wal.Options{})
	long := func(n int) string { return string(make([]byte, n+1)) }
	for field, e := range map[string]wal.Entry{
		"ID":    {ID: long(wal.MaxID)},
		"Key":   {ID: "a", Key: long(wal.MaxKey)},
		"Kind":  {ID: "a", Kind: long(wal.MaxName)},
		"Owner": {ID: "a", Owner: "\xff"},
		"State": {ID: "a", State: "nul\x00"},
		"Data":  {ID: "a", Data: make([]byte, wal.MaxData+1)},
	} {
		_, err := f.Begin(t.Context(), e)
		var fe *wal.FieldError
		require.ErrorAs(t, err, &fe)
		require.Equal(t, field, fe.Field)
	}
	var fe *wal.FieldError
	require.ErrorAs(t, f.End(t.Context(), wal.Entry{ID: "a"}, make([]byte, wal.MaxOutcome+1)), &fe)
}

func TestOptions(t *testing.T) {
	for field, opts := range map[string]wal.Options{"Retention": {Retention: -1}, "MaxSize": {MaxSize: 1}} {
		_, err := wal.Open(filepath.Join(t.TempDir(), "wal.db"), opts)
		var fe *wal.FieldError
		require.ErrorAs(t, err, &fe)
		require.Equal(t, field, fe.Field)
	}
}

func TestBackup(t *testing.T) {
	dir := t.TempDir()
	f := open(t, filepath.Join(dir, "wal.db"), wal.Options{})
	for n := range 100 {
		_, err := f.Begin(t.Context(), wal.Entry{ID: fmt.Sprintf("%03d", n), Data: make([]byte, 1000)})
		require.NoError(t, err)
	}
	to := filepath.Join(dir, "backup.db")
	require.NoError(t, f.Backup(t.Context(), to))
	require.ErrorIs(t, f.Backup(t.Context(), to), os.ErrExist)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, f.Backup(ctx, filepath.Join(dir, "other.db")), context.Canceled)

	n := 0
	for _, err := range open(t, to, wal.Options{}).Open(t.Context()) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 100, n)
	left, err := filepath.Glob(filepath.Join(dir, "*.new-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
