// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import "time"

// Options of a File. The zero value is usable.
type Options struct {
	// LockTimeout bounds how long Open waits for another process to release the file. Zero: 2 seconds. Negative:
	// not at all. It never waits for ever.
	LockTimeout time.Duration

	// Retention is how long an ended entry can still be found by its ID and Key. Zero: 24 hours.
	Retention time.Duration

	// MaxSize is the largest size of the file in bytes. A commit that would exceed it fails, and the log closes.
	// Zero: 1 GiB. At least 16 MiB.
	MaxSize int64

	// CompactAbove is the size in bytes from which Open rewrites a file of which less than a quarter is in use, so that
	// the disk has the rest back. Zero: 8 MiB. Negative: never.
	CompactAbove int64

	// AcceptLoss begins an empty log although a damaged one was set aside at this path earlier. Without it Open
	// keeps returning the *CorruptError until somebody puts a file at the path or moves the damaged one away.
	AcceptLoss bool

	// Existing makes Open return fs.ErrNotExist where there is no log, instead of beginning one.
	Existing bool

	// Observer receives what happens. nil is fine.
	Observer *Observer
}

// Observer receives what happens in a File. Any nil field is fine. Hooks are called without a lock held, one at a time,
// and must return quickly: commits wait for them.
type Observer struct {
	Committed func(CommitEvent)
	Compacted func(CompactEvent) // also by Open
}

// CompactEvent is one rewriting of the file without its free space.
type CompactEvent struct {
	Before, After int64         // size of the file in bytes; After is zero if Err is not nil
	Elapsed       time.Duration // how long it took
	Err           error         // nil, or why the file is as it was
}

// CommitEvent is one commit to disk.
type CommitEvent struct {
	Calls   int           // how many calls shared it
	Elapsed time.Duration // how long storage took
	Err     error         // nil, or why the log is closed now
}
