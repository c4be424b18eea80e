// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package wal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
)

// children are the functions that a second process of this test program can run.
var children = map[string]func(path string){"hold": hold, "work": work, "fill": fill, "shrink": shrink, "create": create, "trample": trample, "shift": shift}

// child runs the func that a test selected for a second process. It returns false if this process is not a second
// one.
func child() bool {
	run, ok := children[os.Getenv("ATOLL_WAL_CHILD")]
	if ok {
		run(os.Getenv("ATOLL_WAL_PATH"))
	}
	return ok
}

// second starts this test program as another process that runs one of the children.
func second(t *testing.T, name, path string) (*exec.Cmd, io.Reader) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "ATOLL_WAL_CHILD="+name, "ATOLL_WAL_PATH="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	in, err := cmd.StdinPipe() // keeps the child's standard input open
	require.NoError(t, err)
	t.Cleanup(func() { _ = in.Close() })
	require.NoError(t, cmd.Start())
	return cmd, out
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// hold opens the log, prints a line, and keeps the log open until the process is killed.
func hold(path string) {
	_, err := wal.Open(path, wal.Options{})
	must(err)
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	cmd, out := second(t, "hold", path)
	_, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)

	_, err = wal.Open(path, wal.Options{LockTimeout: -1})
	locked, ok := errors.AsType[*wal.LockedError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, cmd.Process.Pid, locked.Holder.PID)
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, host, locked.Holder.Host)
	require.Contains(t, locked.Error(), fmt.Sprintf("process %d (%s)", cmd.Process.Pid, filepath.Base(os.Args[0])))
	require.False(t, locked.Holder.Since.IsZero())

	// A killed process holds no lock, whatever files it left behind.
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	f := open(t, path, wal.Options{})
	_, err = wal.Open(path, wal.Options{LockTimeout: time.Millisecond})
	locked, ok = errors.AsType[*wal.LockedError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, os.Getpid(), locked.Holder.PID)
	require.NoError(t, f.Close())
}

// work begins, advances and ends entries in several goroutines, in an endless loop, and prints each acknowledged
// call.
func work(path string) {
	f, err := wal.Open(path, wal.Options{})
	must(err)
	workWith(f)
}

func workWith(f *wal.File) {
	ctx := context.Background()
	var mu sync.Mutex
	say := func(what, id, version string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(what, id, version)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				e, err := f.Begin(ctx, wal.Entry{ID: fmt.Sprintf("%d-%016x", time.Now().UnixNano(), rand.Uint64()), Data: make([]byte, rand.IntN(6000))})
				must(err)
				say("begun", e.ID, e.Version)
				if n%2 == 0 {
					e, err = f.Advance(ctx, e)
					must(err)
					say("advanced", e.ID, e.Version)
				}
				if n%3 == 0 {
					say("ending", e.ID, e.Version)
					must(f.End(ctx, e, nil))
					say("ended", e.ID, e.Version)
				}
			}
		})
	}
	wg.Wait()
}

// A file has only one lock, whatever name it is opened by.
func TestLockedByAnotherName(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "wal.db"), filepath.Join(dir, "link.db")
	open(t, path, wal.Options{})
	require.NoError(t, os.Symlink(path, link))
	_, err := wal.Open(link, wal.Options{LockTimeout: -1})
	locked, ok := errors.AsType[*wal.LockedError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, os.Getpid(), locked.Holder.PID)
}

// Acknowledged calls survive a kill. An entry has ended only if its End was called.
func TestKill(t *testing.T) {
	const kills = 100
	t.Logf("%d acknowledged entries over %d kills", killed(t, "work", filepath.Join(t.TempDir(), "wal.db"), kills), kills)
}

// killed starts a child that works with the log at path and kills it, many times. It checks the log after each
// kill. It returns the number of acknowledged entries.
func killed(t *testing.T, name, path string, kills int) (entries int) {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 8))
	type call struct{ what, version string }
	calls := map[string]call{} // by ID: the last acknowledged call
	note := func(line string) {
		if f := strings.Fields(line); len(f) == 3 { // the last line may be incomplete
			calls[f[1]] = call{f[0], f[2]}
		}
	}
	for range kills {
		cmd, out := second(t, name, path)
		lines := bufio.NewScanner(out)
		for range 1 + random.IntN(60) { // kill after some acknowledgements, during other calls
			if !lines.Scan() {
				break
			}
			note(lines.Text())
		}
		time.AfterFunc(time.Duration(random.IntN(3000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		for lines.Scan() {
			note(lines.Text())
		}
		_ = cmd.Wait()

		found, damaged, err := survey(t, path)
		require.NoError(t, err)
		require.Empty(t, damaged)
		for id, call := range calls {
			e, open := found[id]
			switch call.what {
			case "ended":
				require.False(t, open, "%s was ended and is open", id)
			case "ending":
			default:
				require.True(t, open, "%s was %s and is gone", id, call.what)
			}
			if open {
				require.GreaterOrEqual(t, len(e.Version), len(call.version))
				if len(e.Version) == len(call.version) {
					require.GreaterOrEqual(t, e.Version, call.version, "%s went back", id)
				}
			}
		}
	}
	require.Greater(t, len(calls), kills)
	open(t, path, wal.Options{})
	return len(calls)
}

// fill writes until a call fails at the process's file size limit, and prints the results.
func fill(path string) {
	signal.Ignore(syscall.SIGXFSZ)
	f, err := wal.Open(path, wal.Options{})
	must(err)
	must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 2 << 20, Max: 2 << 20}))
	for n := 0; ; n++ {
		_, err := f.Begin(context.Background(), wal.Entry{ID: fmt.Sprintf("%05d", n), Data: make([]byte, 100_000)})
		if err == nil {
			continue
		}
		_, doubt := errors.AsType[*wal.InDoubtError](err)
		_, later := f.Begin(context.Background(), wal.Entry{ID: "later"})
		fmt.Println(n, doubt, strings.Contains(err.Error(), "raise the file size limit"), errors.Is(later, wal.ErrClosed), f.Close() == nil)
		return
	}
}

func TestFileSizeLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wal.db")
	cmd, out := second(t, "fill", path)
	var written int
	var doubt, limit, closed, released bool
	_, err := fmt.Fscan(out, &written, &doubt, &limit, &closed, &released)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	require.True(t, doubt && limit && closed && released, "in doubt %t, remedy %t, closed after %t, released %t", doubt, limit, closed, released)
	found, damaged, err := survey(t, path)
	require.NoError(t, err)
	require.Empty(t, damaged)
	require.GreaterOrEqual(t, len(found), written)
	require.LessOrEqual(t, len(found), written+1)
	require.Positive(t, written)
	open(t, path, wal.Options{})
}

// shift moves the log to and fro between two paths, in an endless loop, and begins an entry after each move.
func shift(path string) {
	from, to := path, filepath.Join(filepath.Dir(path), "ring", "wal.db")
	if _, err := os.Stat(from); err != nil {
		from, to = to, from
	}
	for n := 0; ; n++ {
		f, err := wal.Open(from, wal.Options{Existing: true})
		must(err)
		e, err := f.Begin(context.Background(), wal.Entry{ID: fmt.Sprintf("%d-%d", time.Now().UnixNano(), n)})
		must(err)
		fmt.Println("begun", e.ID)
		must(f.Move(context.Background(), to))
		from, to = to, from
	}
}

// If a process is killed during a move, one log remains, at one of the two paths, with all acknowledged entries.
func TestKillDuringMove(t *testing.T) {
	const kills = 30
	random := rand.New(rand.NewPCG(11, 12))
	path := filepath.Join(t.TempDir(), "wal.db")
	other := filepath.Join(filepath.Dir(path), "ring", "wal.db")
	f, err := wal.Open(path, wal.Options{})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	begun, places := map[string]bool{}, map[string]int{}
	for range kills {
		cmd, out := second(t, "shift", path)
		lines := bufio.NewScanner(out)
		for n := random.IntN(4); n >= 0 && lines.Scan(); n-- {
			_, id, _ := strings.Cut(lines.Text(), " ")
			begun[id] = true
		}
		time.AfterFunc(time.Duration(random.IntN(3000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		for lines.Scan() {
			if _, id, whole := strings.Cut(lines.Text(), " "); whole && strings.Contains(id, "-") {
				begun[id] = true
			}
		}
		_ = cmd.Wait()
		at := path
		if _, err := os.Stat(path); err != nil {
			at = other
		} else {
			require.NoFileExists(t, other)
		}
		places[at]++
		found, damaged, err := survey(t, at)
		require.NoError(t, err)
		require.Empty(t, damaged)
		for id := range begun {
			require.Contains(t, found, id)
		}
	}
	require.Len(t, places, 2, "%v", places)
}
