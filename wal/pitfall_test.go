// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package wal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/atoll-dev/atoll/wal"
)

// Open waits for a program that holds only bbolt's own lock, for at most LockTimeout.
func TestHeldByAnotherProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	filled(t, path, 2)
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	for _, timeout := range []time.Duration{-1, 30 * time.Millisecond} {
		_, err = wal.Open(path, wal.Options{LockTimeout: timeout})
		locked, ok := errors.AsType[*wal.LockedError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, path, locked.Path)
	}
	require.NoError(t, db.Close())
	open(t, path, wal.Options{})
}

// After a failed commit the log does not write to the disk again.
func TestFailedCommitIsNotRepeated(t *testing.T) {
	f, err := wal.Open(filepath.Join(t.TempDir(), "wal.db"), wal.Options{})
	require.NoError(t, err)
	commits := 0
	f.OnCommit(func(*bbolt.Tx) error {
		commits++
		return syscall.EIO
	})
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			_, err := f.Begin(t.Context(), wal.Entry{ID: fmt.Sprint(n)})
			require.ErrorIs(t, err, wal.ErrClosed)
		})
	}
	wg.Wait()
	refused(t, f.Compact(t.Context()))
	require.NoError(t, f.Close())
	require.Equal(t, 1, commits)
}

// Returned entries stay readable when the file is unmapped, and are not overwritten by later commits.
func TestEntriesOutliveTheLog(t *testing.T) {
	f, err := wal.Open(filepath.Join(t.TempDir(), "wal.db"), wal.Options{})
	require.NoError(t, err)
	var kept []wal.Entry
	for n := range 8 {
		id := fmt.Sprintf("%02d", n)
		data := bytes.Repeat([]byte{byte(n)}, 2000)
		stored, err := f.Begin(t.Context(), wal.Entry{ID: id, Key: id, Data: data})
		require.NoError(t, err)
		clear(data) // the caller may use its slice again
		found, err := f.Find(t.Context(), id)
		require.NoError(t, err)
		kept = append(kept, stored, found)
	}
	for e, err := range f.Open(t.Context()) {
		require.NoError(t, err)
		kept = append(kept, e)
		require.NoError(t, f.End(t.Context(), e, e.Data))
	}
	require.NoError(t, f.Compact(t.Context()))
	require.NoError(t, f.Close())
	require.Len(t, kept, 24)
	for _, e := range kept {
		var n byte
		_, err := fmt.Sscanf(e.ID, "%d", &n)
		require.NoError(t, err)
		require.Equal(t, bytes.Repeat([]byte{n}, 2000), e.Data)
	}
}

// The file can outgrow its memory map during an iteration in the same goroutine: the iteration keeps no transaction
// open.
func TestGrowWhileIterating(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "wal.db"), wal.Options{})
	for n := range 70 { // more entries than one read transaction returns
		_, err := f.Begin(t.Context(), wal.Entry{ID: fmt.Sprintf("%02d", n)})
		require.NoError(t, err)
	}
	seen := 0
	for e, err := range f.Open(t.Context()) {
		require.NoError(t, err)
		if e.ID >= "x" {
			break
		}
		if seen++; seen != 10 {
			continue
		}
		for n := range 20 { // the first memory map is 16 MiB
			_, err := f.Begin(t.Context(), wal.Entry{ID: fmt.Sprintf("x%02d", n), Data: make([]byte, wal.MaxData)})
			require.NoError(t, err)
		}
	}
	require.Equal(t, 70, seen)
}

// A lone call waits for no timer, and each change is applied once. The test runs in virtual time, which advances
// only while all goroutines wait.
func TestLoneCallWaitsForNoTimer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	synctest.Test(t, func(t *testing.T) {
		f, err := wal.Open(path, wal.Options{})
		require.NoError(t, err)
		start := time.Now()
		e, err := f.Begin(t.Context(), wal.Entry{ID: "a"})
		require.NoError(t, err)
		again, err := f.Advance(t.Context(), e)
		require.NoError(t, err)
		require.Equal(t, "1", e.Version)
		require.Equal(t, "2", again.Version)
		require.NoError(t, f.End(t.Context(), again, nil))
		require.Zero(t, time.Since(start))
		require.NoError(t, f.Close())
	})
}

// A copy of the file is a separate log with the same entries. Both can be open at once, and neither detects the
// other. Only the caller's fencing in the affected systems can detect that two logs are in use.
func TestCopiedLog(t *testing.T) {
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "wal.db"), filepath.Join(dir, "copy.db")
	entries := filled(t, path, 8)
	image, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, image, 0o600))
	a, b := open(t, path, wal.Options{}), open(t, copied, wal.Options{})
	require.Equal(t, entries, collect(t, a))
	require.Equal(t, entries, collect(t, b))
	e := entries["operation-001"]
	require.NoError(t, a.End(t.Context(), e, nil))
	_, err = b.Advance(t.Context(), e)
	require.NoError(t, err)
}

// Open does not create a log behind a dangling link: the empty log would hide the one on a disk that is not
// mounted.
func TestDanglingLink(t *testing.T) {
	dir := t.TempDir()
	link, target := filepath.Join(dir, "wal.db"), filepath.Join(dir, "disk", "wal.db")
	require.NoError(t, os.Symlink(target, link))
	_, err := wal.Open(link, wal.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Contains(t, err.Error(), link)
	to, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, target, to)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)

	open(t, target, wal.Options{})
	_, err = wal.Open(link, wal.Options{LockTimeout: -1})
	_, ok := errors.AsType[*wal.LockedError](err)
	require.True(t, ok, "%v", err)
}

// Every caller of a damaged log gets an answer, whichever call finds the damage first. The test runs in another
// process, because a goroutine may hold a lock of bbolt for ever.
func TestDamageUnderConcurrentCalls(t *testing.T) {
	cmd, out := second(t, "trample", t.TempDir())
	said, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	require.Equal(t, "20 answered", string(said))
}

// trample overwrites the meta pages of logs during calls of Begin and Find.
func trample(dir string) {
	for round := range 20 {
		path := filepath.Join(dir, fmt.Sprint(round))
		ctx := context.Background()
		f, err := wal.Open(path, wal.Options{})
		must(err)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for n := 0; ; n++ {
					var err error
					if g%2 == 0 {
						_, err = f.Begin(ctx, wal.Entry{ID: fmt.Sprintf("%d-%d", g, n)})
					} else if _, err = f.Find(ctx, "k"); errors.Is(err, wal.ErrNotFound) {
						err = nil
					}
					if err != nil {
						return
					}
				}
			})
		}
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		must(err)
		answered := make(chan struct{})
		go func() {
			wg.Wait()
			close(answered)
		}()
		for damaging := true; damaging; { // repeated, since a commit may rewrite a meta page
			select {
			case <-answered:
				damaging = false
			default:
				_, err = file.WriteAt(bytes.Repeat([]byte{byte(round)}, 2*os.Getpagesize()), 0)
				must(err)
			}
		}
		must(file.Close())
		_ = f.Close() // only checks that Close returns
	}
	fmt.Print("20 answered")
}
