// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import "time"

// Options configure a File. The zero value is usable.
type Options struct {
	// LockTimeout bounds how long Open waits for another process to release the file. Zero: 2 seconds. Negative: no
	// wait.
	LockTimeout time.Duration

	// Retention is how long an ended entry can still be found by its ID and Key. Zero: 24 hours.
	Retention time.Duration

	// MaxSize is the maximum size of the file in bytes. A commit that would exceed it fails, and the log closes.
	// Zero: 1 GiB. At least 16 MiB.
	MaxSize int64

	// CompactAbove is the size in bytes above which Open rewrites a file of which less than a quarter is in use, to
	// return the rest to the file system. Zero: 8 MiB. Negative: never.
	CompactAbove int64

	// AcceptLoss creates an empty log even if a damaged one was renamed from this path. Without it Open returns the
	// *CorruptError until an operator puts a file at the path or moves the damaged one to another directory.
	AcceptLoss bool

	// Existing makes Open return fs.ErrNotExist if there is no log, instead of creating one.
	Existing bool

	// Observer receives events of the File. It may be nil.
	Observer *Observer
}

// Observer receives events of a File. Nil fields are valid. Hooks are called without a lock held, one at a time, and
// must return quickly: commits wait for them.
type Observer struct {
	Committed func(CommitEvent)
	Compacted func(CompactEvent) // called by Open too
}

// CompactEvent is one rewrite of the file without its free space.
type CompactEvent struct {
	Before, After int64         // size of the file in bytes; After is zero if Err is not nil
	Elapsed       time.Duration // how long it took
	Err           error         // nil, or why the file was not rewritten
}

// CommitEvent is one commit to disk.
type CommitEvent struct {
	Calls   int           // how many calls shared it
	Elapsed time.Duration // how long storage needed
	Err     error         // nil, or why the log is closed now
}
