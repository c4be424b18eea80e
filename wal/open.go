// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// Open opens or creates the log at path, and creates missing directories. Beside the log (or beside the target of a
// link) is the file path.lock, which names the process that holds the log. Errors: *LockedError (names the holder),
// *SchemaError (a newer or foreign file, left unchanged), *CorruptError (the file was renamed; the error has the
// new name), *FieldError, or a file system error with the path and a remedy. Open waits at most Options.LockTimeout
// for another process. The caller must close the File.
func Open(path string, opts Options) (*File, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if path == "" {
		return nil, &FieldError{Field: "path", Reason: "is empty, must name a file"}
	}
	path = filepath.Clean(path)
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		// The lock is beside the file itself: a file has only one lock, whatever name it is opened by.
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			// Do not create a link's target: its disk may not be mounted yet, and the log would be empty.
			return nil, explain(path, "follow link", err)
		}
		path = target
	}
	if !opts.Existing {
		if err := makeDirs(filepath.Dir(path)); err != nil {
			return nil, explain(path, "create directory", err)
		}
	}
	start := time.Now()
	held, err := acquireLock(path, opts.LockTimeout)
	if err != nil {
		return nil, err
	}
	f, err := openHeld(path, opts, max(0, opts.LockTimeout-time.Since(start)))
	if err != nil {
		_ = held.release()
		return nil, err
	}
	f.lock = held
	go f.own()
	return f, nil
}

// openHeld opens the log at path, like Open, for a caller that holds the lock.
func openHeld(path string, opts Options, timeout time.Duration) (*File, error) {
	if err := provide(path, opts); err != nil {
		return nil, err
	}
	if err := discardPrepared(path); err != nil {
		return nil, explain(path, "remove the leftover of a crash", err)
	}
	found, err := inspectPath(path)
	if err != nil {
		return nil, err
	}
	if found.misnamed && found.broken == nil {
		if found, err = mend(path, found); err != nil {
			return nil, explain(path, "mend", err)
		}
	}
	if event, ok := compactAtOpen(path, opts, found); ok {
		opts.compacted(event)
	}
	f := &File{
		path: path, opts: opts, damage: found.damage,
		requests: make(chan *request), turns: make(chan func()), stop: make(chan struct{}), stopped: make(chan struct{}), released: make(chan struct{}),
		abandoned: make(chan struct{}),
		commitTx:  (*bbolt.Tx).Commit,
	}
	err = found.broken
	if err == nil {
		f.store, err = openStore(path, timeout, opts.MaxSize)
	}
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, &LockedError{Path: path, Waited: opts.LockTimeout}
	case found.broken != nil || errors.Is(err, errDamaged):
		name, moveErr := setAside(path)
		if moveErr != nil {
			return nil, &CorruptError{Path: path, Err: errors.Join(err, moveErr)}
		}
		return nil, &CorruptError{Path: path, SetAside: name, Err: err}
	}
	return nil, explain(path, "open", err)
}

// provide makes sure that a regular file exists at path.
func provide(path string, opts Options) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return begin(path, opts)
	case err != nil:
		return explain(path, "open", err)
	case !info.Mode().IsRegular():
		return foreign(path, "not a regular file")
	}
	return nil
}

// begin creates the log. It fails if a damaged log was renamed from path and the caller does not accept its loss. It
// also fails if opts require an existing log and no damaged log was renamed from path.
func begin(path string, opts Options) error {
	name, err := lastSetAside(path)
	switch {
	case err != nil && !opts.AcceptLoss:
		return explain(path, "open", err)
	case name != "" && !opts.AcceptLoss:
		return &CorruptError{Path: path, SetAside: name, Err: errors.New("found at an earlier start")}
	case name == "" && opts.Existing:
		return explain(path, "open", fs.ErrNotExist)
	}
	if err := create(path, func(*filler) error { return nil }); err != nil {
		return explain(path, "create", err)
	}
	return nil
}

func inspectPath(path string) (findings, error) {
	file, err := os.Open(path)
	if err != nil {
		return findings{}, explain(path, "open", err)
	}
	defer func() { _ = file.Close() }()
	found, err := inspect(path, file, 0)
	if _, ok := errors.AsType[*SchemaError](err); err != nil && !ok {
		err = explain(path, "read", err)
	}
	return found, err
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.LockTimeout == 0:
		o.LockTimeout = 2 * time.Second
	case o.LockTimeout < 0:
		o.LockTimeout = 0
	}
	if o.Retention == 0 {
		o.Retention = 24 * time.Hour
	}
	if o.MaxSize == 0 {
		o.MaxSize = 1 << 30
	}
	if o.CompactAbove == 0 {
		o.CompactAbove = 8 << 20
	}
	if o.Retention < 0 {
		return o, &FieldError{Field: "Retention", Reason: fmt.Sprintf("is %s, must not be negative", o.Retention)}
	}
	if o.MaxSize < minMaxSize {
		return o, &FieldError{Field: "MaxSize", Reason: fmt.Sprintf("is %d bytes, must be at least %d", o.MaxSize, minMaxSize)}
	}
	return o, nil
}

const (
	minMaxSize = 16 << 20
	allocSize  = 256 << 10 // a log is small, and bbolt's default step is 16 MiB
)
