// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"
)

const lockPoll = 20 * time.Millisecond

// lock is a file beside a log. The process that has the log open keeps this file locked, and writes its own name into
// the file. The file is never deleted: a lock on a deleted file would exclude no other process.
type lock struct{ file *os.File }

func acquireLock(path string, timeout time.Duration) (*lock, error) {
	start := time.Now()
	for {
		f, ok, err := openLocked(path + ".lock")
		if err != nil {
			return nil, explain(path, "lock", err)
		}
		if ok {
			l := &lock{file: f}
			l.sign()
			return l, nil
		}
		if waited := time.Since(start); waited >= timeout {
			return nil, &LockedError{Path: path, Holder: readHolder(path), Waited: waited.Round(time.Millisecond)}
		}
		time.Sleep(lockPoll)
	}
}

// sign writes this process into the lock file as the holder, as information for people. Errors are ignored.
func (l *lock) sign() {
	host, _ := os.Hostname()
	b, err := json.Marshal(Holder{PID: os.Getpid(), Host: host, Command: filepath.Base(os.Args[0]), Since: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return
	}
	_ = l.file.Truncate(0)
	_, _ = l.file.WriteAt(append(b, '\n'), 0)
}

func readHolder(path string) Holder {
	var h Holder
	if b, err := os.ReadFile(path + ".lock"); err != nil || json.Unmarshal(b, &h) != nil {
		return Holder{}
	}
	return h
}

func (l *lock) release() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}
