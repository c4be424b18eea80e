// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
)

// Without write permission for the file or its directory, each call that needs this permission returns
// os.ErrPermission.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "wal.db")
	grown(t, path)
	before := size(t, path)
	unprivileged(t, dir, func() {
		require.NoError(t, os.Chmod(path, 0o400))
		_, err := wal.Open(path, wal.Options{})
		require.ErrorIs(t, err, os.ErrPermission)
		require.Contains(t, err.Error(), "make file and directory writable")
		require.NoError(t, os.Chmod(path, 0o600))

		// In a directory without write permission the log can be used, but not compacted.
		require.NoError(t, os.Chmod(dir, 0o500))
		var events []wal.CompactEvent
		f, err := wal.Open(path, wal.Options{Observer: &wal.Observer{Compacted: func(e wal.CompactEvent) { events = append(events, e) }}})
		require.NoError(t, err)
		require.Len(t, events, 1)
		require.ErrorIs(t, events[0].Err, os.ErrPermission)
		_, err = f.Begin(t.Context(), wal.Entry{ID: "new"})
		require.NoError(t, err)
		require.ErrorIs(t, f.Backup(t.Context(), path+".backup"), os.ErrPermission)
		require.ErrorIs(t, f.Move(t.Context(), path+".moved"), os.ErrPermission)
		_, err = f.Begin(t.Context(), wal.Entry{ID: "after a move that failed"})
		require.NoError(t, err)
		require.NoError(t, f.Close())
		_, err = wal.Open(filepath.Join(dir, "other.db"), wal.Options{})
		require.ErrorIs(t, err, os.ErrPermission)
		require.NoError(t, os.Chmod(dir, 0o700))
	})
	require.Equal(t, before, size(t, path))
	open(t, path, wal.Options{CompactAbove: -1})
}

// unprivileged runs fn with only the rights that the modes of dir and its files allow.
func unprivileged(t *testing.T, dir string, fn func()) {
	t.Helper()
	if os.Getuid() != 0 {
		fn()
		return
	}
	const nobody = 65534
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711))
	require.NoError(t, os.Chown(dir, nobody, nobody))
	for _, f := range files {
		require.NoError(t, os.Chown(dir+"/"+f.Name(), nobody, nobody))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0)
		fn()
	}()
	<-done
}
