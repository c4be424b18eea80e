// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import "time"

// Options configure a File. The zero value is usable.
type Options struct {
	// LockTimeout is how long Open waits at most for another process to release the file. Zero: 2 seconds.
	// Negative: no wait.
	LockTimeout time.Duration

	// Retention is how long an ended entry can still be found by its ID and Key. Zero: 24 hours.
	Retention time.Duration

	// MaxSize is the maximum size of the file in bytes. A commit that would exceed it fails, and the log closes.
	// Zero: 1 GiB. A value must be at least 16 MiB.
	MaxSize int64

	// CompactAbove is a size of the file in bytes. Open rewrites a larger file if less than a quarter of it is in
	// use, to return the rest to the file system. Zero: 8 MiB. Negative: never.
	CompactAbove int64

	// AcceptLoss creates an empty log even if a damaged log was renamed from this path. Without it Open returns the
	// *CorruptError until an operator puts a file at the path or moves the damaged file to another directory.
	AcceptLoss bool

	// Existing makes Open return fs.ErrNotExist instead of creating a log. It has no effect if a damaged log was
	// renamed from this path: then AcceptLoss decides.
	Existing bool

	// Observer receives events of the File. It may be nil.
	Observer *Observer
}

// Observer receives events of a File. Nil fields are valid. Hooks are called without a lock held, one at a time, and
// must return quickly: commits wait for them.
type Observer struct {
	Committed func(CommitEvent)
	Compacted func(CompactEvent) // Open calls it too
}

// CompactEvent is one rewrite of the file, which removes its free space.
type CompactEvent struct {
	Before, After int64         // size of the file in bytes; After is valid only if Err is nil
	Elapsed       time.Duration // duration of the rewrite
	Err           error         // why the rewrite failed; nil after a success
}

// CommitEvent is one commit to disk.
type CommitEvent struct {
	Calls   int           // how many calls shared the commit
	Elapsed time.Duration // how long storage needed
	Err     error         // why the commit failed and the log is closed now; nil after a success
}
