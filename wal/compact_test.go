// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package wal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
)

// grown writes and closes a log that was once large and now holds few entries. It returns these entries
// by ID.
func grown(t *testing.T, path string) map[string]wal.Entry {
	t.Helper()
	f, err := wal.Open(path, wal.Options{Retention: 1})
	require.NoError(t, err)
	var large []wal.Entry
	for n := range 14 {
		e, err := f.Begin(t.Context(), wal.Entry{ID: fmt.Sprintf("large-%02d", n), Data: make([]byte, wal.MaxData)})
		require.NoError(t, err)
		large = append(large, e)
	}
	for _, e := range large {
		require.NoError(t, f.End(t.Context(), e, nil))
	}
	live := map[string]wal.Entry{}
	for n := range 5 { // the first of these commits prunes the large entries
		e, err := f.Begin(t.Context(), wal.Entry{ID: fmt.Sprintf("small-%02d", n), Key: fmt.Sprintf("key-%02d", n), Data: []byte{byte(n)}})
		require.NoError(t, err)
		live[e.ID] = e
	}
	require.NoError(t, f.Close())
	require.Greater(t, size(t, path), int64(14<<20))
	return live
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

func collect(t *testing.T, f *wal.File) map[string]wal.Entry {
	t.Helper()
	found := map[string]wal.Entry{}
	for e, err := range f.Open(t.Context()) {
		require.NoError(t, err)
		found[e.ID] = e
	}
	return found
}

func TestCompactAtOpen(t *testing.T) {
	for name, c := range map[string]struct {
		above   int64
		compact bool
	}{"by default": {0, true}, "above 1 MiB": {1 << 20, true}, "above 100 MiB": {100 << 20, false}, "never": {-1, false}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "wal.db")
			live := grown(t, path)
			before := size(t, path)
			var events []wal.CompactEvent
			f := open(t, path, wal.Options{CompactAbove: c.above, Observer: &wal.Observer{Compacted: func(e wal.CompactEvent) { events = append(events, e) }}})
			require.Equal(t, live, collect(t, f))
			require.NoError(t, f.Verify(t.Context()))
			if !c.compact {
				require.Empty(t, events)
				require.Equal(t, before, size(t, path))
				return
			}
			require.Len(t, events, 1)
			require.NoError(t, events[0].Err)
			require.Equal(t, before, events[0].Before)
			require.Less(t, events[0].After, int64(1<<20))
			require.Equal(t, events[0].After, size(t, path))
			for _, e := range live {
				found, err := f.Find(t.Context(), e.Key)
				require.NoError(t, err)
				require.Equal(t, e, found)
			}
		})
	}
}

// A file whose space is in use is not compacted, however large it is.
func TestFullFileIsNotCompacted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	f, err := wal.Open(path, wal.Options{})
	require.NoError(t, err)
	for n := range 12 {
		_, err := f.Begin(t.Context(), wal.Entry{ID: fmt.Sprint(n), Data: make([]byte, wal.MaxData)})
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	open(t, path, wal.Options{Observer: &wal.Observer{Compacted: func(e wal.CompactEvent) { t.Errorf("compacted: %+v", e) }}})
}

// Versions continue after a compaction, even if no remaining entry has the last version.
func TestCompactKeepsVersions(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "wal.db"), wal.Options{Retention: 1})
	var last wal.Entry
	for n := range 9 {
		e, err := f.Begin(t.Context(), wal.Entry{ID: fmt.Sprint("a", n)})
		require.NoError(t, err)
		require.NoError(t, f.End(t.Context(), e, nil))
		last = e
	}
	stale, err := f.Begin(t.Context(), wal.Entry{ID: "b"})
	require.NoError(t, err)
	require.NotEqual(t, last.Version, stale.Version)
	require.NoError(t, f.End(t.Context(), stale, nil))
	for range 2 {
		time.Sleep(time.Microsecond) // past the retention time
		e, err := f.Begin(t.Context(), wal.Entry{ID: fmt.Sprint("c", time.Now().UnixNano())})
		require.NoError(t, err)
		require.NoError(t, f.End(t.Context(), e, nil))
		stale = e
	}
	require.NoError(t, f.Compact(t.Context()))
	e, err := f.Begin(t.Context(), wal.Entry{ID: stale.ID + "-next"})
	require.NoError(t, err)
	before, err := strconv.Atoi(stale.Version)
	require.NoError(t, err)
	after, err := strconv.Atoi(e.Version)
	require.NoError(t, err)
	require.Greater(t, after, before)
}

// Begin, Advance, End, Open, Verify and Backup run during compactions without an error, and no entry is lost.
func TestCompactWhileInUse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "wal.db")
	f := open(t, path, wal.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var mu sync.Mutex
	want := map[string]wal.Entry{}
	for g := range 3 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				e, err := f.Begin(t.Context(), wal.Entry{ID: fmt.Sprintf("%d-%04d", g, n), Key: fmt.Sprintf("k%d-%04d", g, n), Data: make([]byte, 3000)})
				require.NoError(t, err)
				e.State = "advanced"
				e, err = f.Advance(t.Context(), e)
				require.NoError(t, err)
				if n%2 == 0 {
					require.NoError(t, f.End(t.Context(), e, nil))
					continue
				}
				mu.Lock()
				want[e.ID] = e
				mu.Unlock()
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			for _, err := range f.Open(t.Context()) {
				require.NoError(t, err)
			}
			require.NoError(t, f.Verify(t.Context()))
		}
	})
	backups := 0
	wg.Go(func() {
		for ; ctx.Err() == nil; backups++ {
			to := filepath.Join(dir, fmt.Sprintf("backup-%d.db", backups))
			require.NoError(t, f.Backup(t.Context(), to))
			b, err := wal.Open(to, wal.Options{})
			require.NoError(t, err)
			require.NoError(t, b.Verify(t.Context()))
			require.NoError(t, b.Close())
		}
	})
	for range 25 {
		require.NoError(t, f.Compact(t.Context()))
	}
	cancel()
	wg.Wait()
	require.Equal(t, want, collect(t, f))
	require.Positive(t, backups)
	t.Logf("%d entries, %d backups, 25 compactions", len(want), backups)
}

// A compaction that fails leaves the log unchanged and in use.
func TestCompactFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	live := grown(t, path)
	before := size(t, path)
	var events []wal.CompactEvent
	f := open(t, path, wal.Options{CompactAbove: -1, Observer: &wal.Observer{Compacted: func(e wal.CompactEvent) { events = append(events, e) }}})
	require.NoError(t, os.MkdirAll(filepath.Join(path+".new", "something"), 0o700))
	err := f.Compact(t.Context())
	require.Error(t, err)
	require.NotErrorIs(t, err, wal.ErrClosed)
	require.Len(t, events, 1)
	require.Error(t, events[0].Err)
	require.Zero(t, events[0].After)
	require.Equal(t, before, size(t, path))
	require.Equal(t, live, collect(t, f))
	_, err = f.Begin(t.Context(), wal.Entry{ID: "another"})
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(path+".new"))

	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, f.Compact(ctx), context.Canceled)
	require.NoFileExists(t, path+".new")
	require.NoError(t, f.Compact(t.Context()))
	require.Less(t, size(t, path), before)
	require.Len(t, collect(t, f), len(live)+1)
	require.NoError(t, f.Close())
	require.ErrorIs(t, f.Compact(t.Context()), wal.ErrClosed)
}

// A compaction keeps damaged entries; it restores a damaged key from its entry.
func TestCompactKeepsDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	entries := filled(t, path, 12)
	damage(t, path, "operation-005\x01", 40)
	damage(t, path, "request-006\x01", 25) // damages the record that maps the key to the ID
	f, err := wal.Open(path, wal.Options{})
	require.NoError(t, err)
	_, err = f.Find(t.Context(), "request-006")
	_, ok := errors.AsType[*wal.CorruptError](err)
	require.True(t, ok, "%v", err)
	require.NoError(t, f.Compact(t.Context()))
	found, err := f.Find(t.Context(), "request-006")
	require.NoError(t, err)
	require.Equal(t, entries["operation-006"], found)
	var bad []string
	for e, err := range f.Open(t.Context()) {
		if c, ok := errors.AsType[*wal.CorruptError](err); ok {
			bad = append(bad, c.ID)
			continue
		}
		require.Equal(t, entries[e.ID], e)
	}
	require.Equal(t, []string{"operation-005"}, bad)
	require.NoError(t, f.Close())
}

// damage flips a bit behind each occurrence of the text what in the file, at offset bytes from the start of the text.
func damage(t *testing.T, path, what string, offset int) {
	t.Helper()
	image, err := os.ReadFile(path)
	require.NoError(t, err)
	n := 0
	for at := 0; ; n++ {
		i := strings.Index(string(image[at:]), what)
		if i < 0 {
			break
		}
		image[at+i+offset] ^= 4
		at += i + len(what)
	}
	require.Positive(t, n)
	require.NoError(t, os.WriteFile(path, image, 0o600))
}

// shrink runs workWith on a log that another goroutine compacts again and again. Open compacts the log, too, if most
// of it is free.
func shrink(path string) {
	f, err := wal.Open(path, wal.Options{CompactAbove: 1})
	must(err)
	go func() {
		for {
			must(f.Compact(context.Background()))
		}
	}()
	workWith(f)
}

// Acknowledged calls survive a kill during a compaction.
func TestKillDuringCompaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	entries := killed(t, "shrink", path, 40)
	t.Logf("%d acknowledged entries over 40 kills", entries)
	left, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{path, path + ".lock"}, left, "leftovers of a crash are removed")
}

// create makes logs in new directories, in an endless loop.
func create(path string) {
	for n := 0; ; n++ {
		f, err := wal.Open(filepath.Join(path, fmt.Sprint(n), "deep", "wal.db"), wal.Options{})
		must(err)
		fmt.Println("made", n)
		must(f.Close())
	}
}

// If a process is killed while it creates a log, it leaves either a complete log or no log.
func TestKillDuringCreation(t *testing.T) {
	const kills = 30
	random := rand.New(rand.NewPCG(9, 10))
	logs := 0
	for range kills {
		dir := t.TempDir()
		cmd, out := second(t, "create", dir)
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan())
		time.AfterFunc(time.Duration(random.IntN(4000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		made := 1
		for lines.Scan() {
			made++
		}
		_ = cmd.Wait()
		for n := range made + 1 { // the last log is the one that was being created
			path := filepath.Join(dir, fmt.Sprint(n), "deep", "wal.db")
			_, err := os.Stat(path)
			if n < made {
				require.NoError(t, err)
			} else if err != nil {
				require.ErrorIs(t, err, fs.ErrNotExist)
			}
			f, err := wal.Open(path, wal.Options{})
			require.NoError(t, err)
			require.NoError(t, f.Verify(t.Context()))
			require.NoError(t, f.Close())
			logs++
		}
	}
	require.Greater(t, logs, kills)
	t.Logf("%d logs over %d kills", logs, kills)
}
