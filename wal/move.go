// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Move renames the log to another path and closes it: to continue, open it there. Move creates missing directories.
// Move holds the locks of both paths, so that no other process opens the log at the same time. A crash at any moment
// leaves the log complete at one of the two paths.
//
// Errors: fs.ErrExist if a file exists at to, or a damaged log that Open has renamed from to; *LockedError if a
// process holds the lock of to; *FieldError, ErrClosed, or a file system error, for example where a file in use cannot
// be renamed (Windows). After an error the File stays usable at its old path, unless later calls return ErrClosed:
// then its directories could not be synced, and it is at one of the two paths.
func (f *File) Move(ctx context.Context, to string) error {
	if to == "" {
		return &FieldError{Field: "to", Reason: "is empty, must name a new file"}
	}
	if !f.opened() {
		return f.wrap("move", "", errNotOpened)
	}
	to = filepath.Clean(to)
	if err := makeDirs(filepath.Dir(to)); err != nil {
		return explain(to, "create directory", err)
	}
	held, err := acquireLock(to, f.opts.LockTimeout)
	if err != nil {
		return err
	}
	if err = f.turn(ctx, "move", func() error { return f.move(to) }); err == nil {
		err = f.Close()
	}
	return errors.Join(err, held.release())
}

// move does the work of Move. The owner calls it, so that no other goroutine writes at the same time. Move
// holds the lock of to.
func (f *File) move(to string) error {
	if err := f.latch.refusal(); err != nil {
		return err
	}
	if err := vacant(to); err != nil {
		return explain(to, "move here", err)
	}
	if err := os.Rename(f.path, to); err != nil {
		return err
	}
	f.latch.set(fmt.Errorf("moved to %s", to))
	return errors.Join(syncDir(filepath.Dir(to)), syncDir(filepath.Dir(f.path)))
}

// vacant returns an error that wraps fs.ErrExist if path exists, or if a damaged log of this path was set aside: no
// log may be created there. The caller holds the lock of path.
func vacant(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fs.ErrExist)
	}
	name, err := lastSetAside(path)
	if err == nil && name != "" {
		err = fmt.Errorf("%s: %w", name, fs.ErrExist)
	}
	return err
}
