// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package wal_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
)

// syncs are the two system calls that make content and names durable. A call of the log that needs one of them must
// fail if that system call fails.
var syncs = map[string]uintptr{"content": syscall.SYS_FDATASYNC, "names": syscall.SYS_FSYNC}

// unsynced holds calls of the log, each with its preparation. Each func calls broken before the call under test:
// from then on one of the syncs fails in this process.
var unsynced = map[string]func(path string, broken func()) error{
	"create": func(path string, broken func()) error {
		broken()
		_, err := wal.Open(path, wal.Options{})
		return err
	},
	"create directory": func(path string, broken func()) error {
		broken()
		_, err := wal.Open(filepath.Join(filepath.Dir(path), "new", "wal.db"), wal.Options{})
		return err
	},
	"": wal.Build,
	"damaged": func(path string, broken func()) error {
		must(begun(path).Close())
		log, err := os.ReadFile(path)
		must(err)
		for page := 2 * 4096; page < len(log); page += 4096 {
			log[page+8] = 0x77 // overwrite the page's type
		}
		must(os.WriteFile(path, log, 0o600))
		broken()
		_, err = wal.Open(path, wal.Options{})
		return err
	},
	"begin": func(path string, broken func()) error {
		f := begun(path)
		broken()
		_, err := f.Begin(context.Background(), wal.Entry{ID: "b"})
		return err
	},
	"compact": func(path string, broken func()) error {
		f := begun(path)
		broken()
		return f.Compact(context.Background())
	},
	"move": func(path string, broken func()) error {
		f := begun(path)
		broken()
		return f.Move(context.Background(), path+".moved")
	},
	"backup": func(path string, broken func()) error {
		f := begun(path)
		broken()
		return f.Backup(context.Background(), path+".backup")
	},
	"salvage": func(path string, broken func()) error {
		must(begun(path).Close())
		broken()
		_, err := wal.Salvage(context.Background(), path, path+".salvaged")
		return err
	},
}

func begun(path string) *wal.File {
	f, err := wal.Open(path, wal.Options{})
	must(err)
	_, err = f.Begin(context.Background(), wal.Entry{ID: "a"})
	must(err)
	return f
}

func init() { children["unsynced"] = unsyncedChild } //nolint:gochecknoinits // the table is for all platforms

// unsyncedChild makes the call named by ATOLL_WAL_CALL while the sync named by ATOLL_WAL_SYNC fails.
func unsyncedChild(path string) {
	err := unsynced[os.Getenv("ATOLL_WAL_CALL")](path, func() { must(refuse(syncs[os.Getenv("ATOLL_WAL_SYNC")])) })
	fmt.Print(err)
}

// refuse makes a system call fail with EIO from now on, in all threads of this process.
func refuse(call uintptr) error {
	type instruction struct {
		code   uint16
		jt, jf uint8
		k      uint32
	}
	const load, jumpEqual, ret, allow, fail = 0x20, 0x15, 0x06, 0x7fff0000, 0x00050000
	filter := []instruction{
		{load, 0, 0, 0},
		{jumpEqual, 0, 1, uint32(call)},
		{ret, 0, 0, fail | uint32(syscall.EIO)},
		{ret, 0, 0, allow},
	}
	program := struct {
		length uint16
		filter *instruction
	}{uint16(len(filter)), &filter[0]}
	seccomp := map[string]uintptr{"amd64": 317, "arm64": 277}[runtime.GOARCH]
	const noNewPrivileges, setFilter, allThreads = 38, 1, 1
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, noNewPrivileges, 1, 0); errno != 0 {
		return fmt.Errorf("prctl: %w", errno)
	}
	if _, _, errno := syscall.Syscall(seccomp, setFilter, allThreads, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

// A call that needs a sync of the content or of the names fails if this sync fails.
func TestNothingIsDoneUnlessItWasSynced(t *testing.T) {
	for call, needs := range map[string][]string{
		"create": {"content", "names"}, "create directory": {"names"}, "damaged": {"names"}, "begin": {"content"}, "": {"content"},
		"compact": {"content", "names"}, "move": {"names"}, "backup": {"content", "names"}, "salvage": {"content", "names"},
	} {
		for _, need := range needs {
			t.Run(call+" without "+need, func(t *testing.T) {
				t.Setenv("ATOLL_WAL_CALL", call)
				t.Setenv("ATOLL_WAL_SYNC", need)
				cmd, out := second(t, "unsynced", filepath.Join(t.TempDir(), "wal.db"))
				answer, err := io.ReadAll(out)
				require.NoError(t, err)
				require.NoError(t, cmd.Wait())
				require.Contains(t, string(answer), syscall.EIO.Error(), "%s is done although %s are not synced", call, need)
				require.Contains(t, string(answer), call)
			})
		}
	}
}
