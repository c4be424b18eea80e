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

	"go.etcd.io/bbolt"
)

// Verify reads every record and every page and returns what is damaged, joined, each a *CorruptError; nil means the
// whole file is sound. The log can be used meanwhile.
func (f *File) Verify(ctx context.Context) error {
	if err := f.enter(ctx); err != nil {
		return f.wrap("verify", "", err)
	}
	defer f.leave()
	file, err := os.Open(f.path)
	if err != nil {
		return explain(f.path, "verify", err)
	}
	defer func() { _ = file.Close() }()
	for {
		// The transaction keeps its pages from being reused while they are read. Only if two commits pass before its
		// meta page is read must it be tried again.
		var found findings
		err := f.view(func(tx *bbolt.Tx) (err error) {
			found, err = inspect(f.path, file, uint64(tx.ID()))
			return err
		})
		if errors.Is(err, errOvertaken) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return f.wrap("verify", "", err)
		}
		errs := make([]error, 0, len(found.damage))
		for _, c := range found.damage {
			errs = append(errs, c)
		}
		return errors.Join(errs...)
	}
}

// Backup writes a consistent copy to path, which must not exist, while the log is in use. The copy is durable when it
// returns nil. It is a log of its own: never open original and copy for the same work at once.
func (f *File) Backup(ctx context.Context, path string) error {
	if err := f.enter(ctx); err != nil {
		return f.wrap("backup", "", err)
	}
	defer f.leave()
	path = filepath.Clean(path)
	if err := f.backup(ctx, path); err != nil {
		return explain(f.path, "backup to "+path, err)
	}
	return nil
}

func (f *File) backup(ctx context.Context, path string) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fs.ErrExist)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, file.Close(), os.Remove(file.Name()))
	}()
	err = f.view(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(writerFunc(func(p []byte) (int, error) {
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			return file.Write(p)
		}))
		return err
	})
	if err != nil {
		return err
	}
	found, err := inspect(path, file, 0)
	if err != nil {
		return err
	}
	if found.broken != nil {
		return fmt.Errorf("the copy is damaged: %w", found.broken)
	}
	if err := file.Sync(); err != nil {
		return err
	}
	// A link fails if the name is taken by now, a rename would replace it.
	if err := os.Link(file.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// writerFunc is an io.Writer.
type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }
