// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// Verify reads every record and every page. It returns all damage, joined, each a *CorruptError; nil means that the
// whole file is undamaged. Other calls may use the log at the same time.
func (f *File) Verify(ctx context.Context) error {
	if err := f.enter(ctx); err != nil {
		return f.wrap("verify", "", err)
	}
	defer f.calls.Done()
	for {
		// The transaction keeps its pages from being reused while inspect reads them. A retry is needed only if two
		// commits complete before inspect reads the transaction's meta page.
		var found findings
		err := f.view(func(s *store, tx *bbolt.Tx) (err error) {
			found, err = inspect(f.path, s.file, uint64(tx.ID()))
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

// Backup writes a consistent copy of the log to path, which must not exist, while the log is in use. The copy is
// durable when Backup returns nil. The copy is a separate log: never open original and copy for the same work at
// once.
func (f *File) Backup(ctx context.Context, path string) error {
	if err := f.enter(ctx); err != nil {
		return f.wrap("backup", "", err)
	}
	defer f.calls.Done()
	if path == "" {
		return f.wrap("backup", "", &FieldError{Field: "path", Reason: "is empty, must name a new file"})
	}
	path = filepath.Clean(path)
	if err := f.backup(ctx, path); err != nil {
		return explain(f.path, "backup to "+path, err)
	}
	return nil
}

func (f *File) backup(ctx context.Context, path string) error {
	for {
		err := publish(path, func(w *filler) error {
			return f.view(func(s *store, tx *bbolt.Tx) error {
				m, err := metaOf(s.file, uint64(tx.ID()))
				if err != nil {
					return err
				}
				return copyTo(ctx, w, s.file, m)
			})
		})
		if !errors.Is(err, errOvertaken) || ctx.Err() != nil {
			return err
		}
	}
}
