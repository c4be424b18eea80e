// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package wal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/atoll-dev/atoll/wal"
)

// After a failed commit, the call in this commit is in doubt, and the File refuses all later calls. The reopened log
// shows whether the change was stored.
func TestFailedCommit(t *testing.T) {
	for _, durable := range []bool{false, true} {
		t.Run(fmt.Sprintf("durable=%t", durable), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "wal.db")
			f, err := wal.Open(path, wal.Options{})
			require.NoError(t, err)
			old, err := f.Begin(t.Context(), wal.Entry{ID: "old"})
			require.NoError(t, err)
			f.OnCommit(func(tx *bbolt.Tx) error {
				if durable {
					require.NoError(t, tx.Commit())
				}
				return syscall.EIO
			})
			_, err = f.Begin(t.Context(), wal.Entry{ID: "new"})
			doubt, ok := errors.AsType[*wal.InDoubtError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, "new", doubt.ID)
			require.ErrorIs(t, err, syscall.EIO)
			require.ErrorIs(t, err, wal.ErrClosed)

			_, err = f.Begin(t.Context(), wal.Entry{ID: "later"})
			refused(t, err)
			_, err = f.Advance(t.Context(), old)
			refused(t, err)
			refused(t, f.End(t.Context(), old, nil))
			_, err = f.Find(t.Context(), "k")
			refused(t, err)
			refused(t, f.Verify(t.Context()))
			refused(t, f.Backup(t.Context(), path+".backup"))
			for _, err := range f.Open(t.Context()) {
				refused(t, err)
			}
			require.NoError(t, f.Close())

			found, _, err := survey(t, path)
			require.NoError(t, err)
			require.Contains(t, found, "old")
			require.NotContains(t, found, "later")
			if durable {
				require.Contains(t, found, "new")
			} else {
				require.NotContains(t, found, "new")
			}
			open(t, path, wal.Options{})
		})
	}
}

// refused requires that err is the error of a closed log, with its cause, and not ErrInDoubt.
func refused(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, wal.ErrClosed)
	require.ErrorIs(t, err, syscall.EIO)
	_, ok := errors.AsType[*wal.InDoubtError](err)
	require.False(t, ok, "a refused call is not in doubt: %v", err)
}

// If the file of an open log is damaged, the log closes. No call waits for a lock that bbolt still holds after a panic.
func TestDamageWhileOpen(t *testing.T) {
	for _, first := range []string{"read", "write"} {
		t.Run(first, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "wal.db")
			f, err := wal.Open(path, wal.Options{})
			require.NoError(t, err)
			file, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			_, err = file.WriteAt(make([]byte, 2*os.Getpagesize()), 0)
			require.NoError(t, err)
			require.NoError(t, file.Close())
			if first == "read" {
				_, err = f.Find(t.Context(), "k")
				require.Error(t, err)
			}
			_, err = f.Begin(t.Context(), wal.Entry{ID: "a"})
			require.Error(t, err)
			_, err = f.Begin(t.Context(), wal.Entry{ID: "b"})
			require.ErrorIs(t, err, wal.ErrClosed)
			_, err = f.Find(t.Context(), "k")
			require.ErrorIs(t, err, wal.ErrClosed)
			require.NoError(t, f.Close())
		})
	}
}

func TestFullLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	f := open(t, path, wal.Options{MaxSize: 16 << 20})
	begun := 0
	var err error
	for err == nil {
		_, err = f.Begin(t.Context(), wal.Entry{ID: fmt.Sprintf("%05d", begun), Data: make([]byte, wal.MaxData)})
		begun++
	}
	require.ErrorIs(t, err, bolterrors.ErrMaxSizeReached)
	require.Contains(t, err.Error(), path)
	require.Contains(t, err.Error(), "MaxSize")
	require.NoError(t, f.Close())
	found, _, err := survey(t, path)
	require.NoError(t, err)
	require.Len(t, found, begun-1)
}

// A call that waits during another call's commit returns when its own context ends, and changes nothing.
func TestCancelWhileQueued(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	f := open(t, path, wal.Options{})
	committing, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.OnCommit(func(tx *bbolt.Tx) error {
		once.Do(func() {
			close(committing)
			<-release
		})
		return tx.Commit()
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := f.Begin(t.Context(), wal.Entry{ID: "first"})
		require.NoError(t, err)
	})
	<-committing
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	returned := make(chan error, 1)
	go func() {
		_, err := f.Begin(ctx, wal.Entry{ID: "second"})
		returned <- err
	}()
	cancel(cause)
	require.ErrorIs(t, <-returned, cause) // while the first call is being committed
	close(release)
	wg.Wait()
	_, err := f.Begin(t.Context(), wal.Entry{ID: "second"})
	require.NoError(t, err)
}

// The calls that wait during one commit share commits: not every call gets a commit of its own.
func TestGroupCommit(t *testing.T) {
	const callers = 64
	var mu sync.Mutex
	var events []wal.CommitEvent
	f := open(t, filepath.Join(t.TempDir(), "wal.db"), wal.Options{Observer: &wal.Observer{Committed: func(e wal.CommitEvent) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	}}})
	first, release := make(chan struct{}), make(chan struct{})
	n := 0
	f.OnCommit(func(tx *bbolt.Tx) error {
		if n++; n == 1 {
			close(first)
			<-release
		}
		return tx.Commit()
	})
	var wg sync.WaitGroup
	start := func(id string) {
		wg.Go(func() {
			_, err := f.Begin(t.Context(), wal.Entry{ID: id})
			require.NoError(t, err)
		})
	}
	start("first")
	<-first
	for i := range callers {
		start(fmt.Sprintf("%03d", i))
	}
	close(release)
	wg.Wait()
	total := 0
	for _, e := range events {
		require.NoError(t, e.Err)
		total += e.Calls
	}
	require.Equal(t, callers+1, total)
	require.Less(t, len(events), callers)
}

// Close waits for the call that is being committed and for the calls that wait behind it.
func TestCloseWaits(t *testing.T) {
	for range 12 { // repeated: whether a stopping File receives a waiting call is random
		synctest.Test(t, func(t *testing.T) {
			f, err := wal.Open(filepath.Join(t.TempDir(), "wal.db"), wal.Options{})
			require.NoError(t, err)
			release := make(chan struct{})
			f.OnCommit(func(tx *bbolt.Tx) error {
				<-release
				return tx.Commit()
			})
			var wg sync.WaitGroup
			for _, id := range []string{"a", "b"} {
				wg.Go(func() {
					_, err := f.Begin(t.Context(), wal.Entry{ID: id})
					require.NoError(t, err)
				})
				synctest.Wait()
			}
			for range 3 {
				wg.Go(func() { require.NoError(t, f.Close()) })
			}
			synctest.Wait()
			close(release)
			wg.Wait()
		})
	}
}

// A call whose result depends on a change in doubt does not return that result.
func TestAnswersThatRestOnADoubtfulCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := wal.Open(filepath.Join(t.TempDir(), "wal.db"), wal.Options{})
		require.NoError(t, err)
		commits, release := 0, make(chan struct{})
		f.OnCommit(func(tx *bbolt.Tx) error {
			if commits++; commits > 1 {
				return syscall.EIO
			}
			<-release
			return tx.Commit()
		})
		var errs [3]error
		for i, id := range []string{"first", "same", "same"} {
			go func() { _, errs[i] = f.Begin(t.Context(), wal.Entry{ID: id}) }()
			synctest.Wait()
		}
		close(release)
		synctest.Wait()
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], wal.ErrInDoubt)
		require.NotErrorIs(t, errs[2], wal.ErrExists)
		require.ErrorIs(t, errs[2], wal.ErrClosed)
		require.NoError(t, f.Close())
	})
}

func TestRetention(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	synctest.Test(t, func(t *testing.T) {
		f, err := wal.Open(path, wal.Options{Retention: time.Hour})
		require.NoError(t, err)
		const n = 100
		for i := range n {
			e, err := f.Begin(t.Context(), wal.Entry{ID: fmt.Sprintf("%03d", i), Key: fmt.Sprint(i)})
			require.NoError(t, err)
			if i != 50 {
				require.NoError(t, f.End(t.Context(), e, nil))
			}
		}
		time.Sleep(59 * time.Minute)
		_, err = f.Begin(t.Context(), wal.Entry{ID: "x", Key: "0"})
		require.ErrorIs(t, err, wal.ErrExists)
		time.Sleep(2 * time.Minute)
		for i := range 5 { // each commit prunes a part of the history
			_, err := f.Begin(t.Context(), wal.Entry{ID: fmt.Sprintf("y%d", i)})
			require.NoError(t, err)
		}
		for i := range n {
			_, err := f.Find(t.Context(), fmt.Sprint(i))
			if i == 50 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, wal.ErrNotFound)
			}
		}
		_, err = f.Begin(t.Context(), wal.Entry{ID: "000", Key: "0"})
		require.NoError(t, err)
		require.NoError(t, f.Verify(t.Context()))
		require.NoError(t, f.Close())
	})
}

// A commit that many calls share checks more of the history than the commit of one call. Otherwise the history would
// grow faster than it is checked.
func TestRetentionOfSharedCommits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	synctest.Test(t, func(t *testing.T) {
		f, err := wal.Open(path, wal.Options{Retention: time.Hour})
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		token := make(chan struct{}, 1) // a commit waits for it
		token <- struct{}{}
		f.OnCommit(func(tx *bbolt.Tx) error {
			<-token
			defer func() { token <- struct{}{} }()
			return tx.Commit()
		})
		const n = 200
		for i := range n {
			e, err := f.Begin(t.Context(), wal.Entry{ID: fmt.Sprintf("%03d", i), Key: fmt.Sprint(i)})
			require.NoError(t, err)
			require.NoError(t, f.End(t.Context(), e, nil))
		}
		time.Sleep(2 * time.Hour)
		for round := range 2 {
			<-token
			var calls sync.WaitGroup
			for i := range n / 2 {
				calls.Go(func() {
					if _, err := f.Begin(t.Context(), wal.Entry{ID: fmt.Sprintf("y%d-%d", round, i)}); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			token <- struct{}{}
			calls.Wait()
		}
		for i := range n {
			_, err := f.Find(t.Context(), fmt.Sprint(i))
			require.ErrorIs(t, err, wal.ErrNotFound)
		}
	})
}

func TestUnusablePath(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	path := filepath.Join(file, "below", "wal.db")
	_, err := wal.Open(path, wal.Options{})
	require.ErrorIs(t, err, syscall.ENOTDIR)
	require.Contains(t, err.Error(), path)
	require.Contains(t, err.Error(), "use a directory")

	if os.Getuid() == 0 {
		dir = "/proc/self/task" // even root cannot write there
	} else {
		require.NoError(t, os.Chmod(dir, 0o500))
	}
	path = filepath.Join(dir, "wal.db")
	_, err = wal.Open(path, wal.Options{})
	require.Error(t, err)
	require.Contains(t, err.Error(), path)
	require.NotContains(t, err.Error(), "\n")
}
