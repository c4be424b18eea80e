// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Compact rewrites the log without its free space, which bbolt reuses and never returns to the file system. It also
// restores damaged idempotency keys from their entries. Open does the same for files that match
// Options.CompactAbove.
//
// Writing calls wait until Compact ends, reading calls do not. A crash at any moment leaves the old file or the new
// one, both complete and with the same content. After an error the log remains usable, unless the error is
// ErrClosed: then the old or the new file is at the path, nothing is lost, and the log must be reopened. Where a
// file in use cannot be replaced (Windows), Compact returns an error; only Open compacts there.
func (f *File) Compact(ctx context.Context) error {
	return f.turn(ctx, "compact", func() error { return f.compact(ctx) })
}

// compact does the work of Compact. The owner calls it, so that no other goroutine writes at the same time.
func (f *File) compact(ctx context.Context) (err error) {
	if err := f.latch.refusal(); err != nil {
		return err
	}
	old := f.store
	start := time.Now()
	event := CompactEvent{Before: sizeOf(old.file)}
	defer func() {
		event.Elapsed, event.Err = time.Since(start), err
		f.opts.compacted(event)
	}()
	if err := old.check(); err != nil {
		f.latch.set(err)
		return f.latch.refusal()
	}
	temporary, err := prepare(f.path, func(w *filler) error {
		m, err := metaOf(old.file, 0)
		if err != nil {
			return err
		}
		return copyTo(ctx, w, old.file, m)
	})
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, f.path); err != nil {
		if !old.isAt(f.path) || errors.Is(err, syscall.EIO) {
			return f.lapse(err)
		}
		return errors.Join(err, os.Remove(temporary))
	}
	// From here on the old file must not be written: after a crash, the path may name the new file.
	if err := syncDir(filepath.Dir(f.path)); err != nil {
		return f.lapse(err)
	}
	s, err := openStore(f.path, f.opts.LockTimeout, f.opts.MaxSize)
	if err != nil {
		return f.lapse(err)
	}
	event.After = sizeOf(s.file)
	f.mu.Lock()
	f.store = s
	f.mu.Unlock()
	f.retired.Go(func() {
		old.readers.Wait()
		_ = old.close() // the file is no longer needed
	})
	return nil
}

// lapse makes all later calls fail: after a crash, the path may name either file, so no write would be safe.
func (f *File) lapse(err error) error {
	f.latch.set(fmt.Errorf("compact: %w", err))
	return f.latch.refusal()
}

func (s *store) isAt(path string) bool {
	a, errA := s.file.Stat()
	b, errB := os.Stat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// sizeOf returns the size of the file, for events. It returns 0 on an error.
func sizeOf(file *os.File) int64 {
	info, err := file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// compactAtOpen compacts a file that is mostly free space. If that fails, Open continues with the log as it is. The
// caller holds the lock.
func compactAtOpen(path string, opts Options, found findings) (CompactEvent, bool) {
	if found.broken != nil || opts.CompactAbove < 0 || found.size <= opts.CompactAbove || found.used > found.size/4 {
		return CompactEvent{}, false
	}
	start := time.Now()
	event := CompactEvent{Before: found.size}
	event.After, event.Err = rewrite(path)
	event.Elapsed = time.Since(start)
	return event, true
}

// rewrite replaces a log by a compact copy and returns the size of the copy. The caller holds the lock.
func rewrite(path string) (size int64, err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0) // fails for a read-only file, which must not be replaced
	if err != nil {
		return 0, err
	}
	m, err := metaOf(file, 0)
	var temporary string
	if err == nil {
		temporary, err = prepare(path, func(w *filler) error { return copyTo(context.Background(), w, file, m) })
	}
	if err = errors.Join(err, file.Close()); err != nil { // close the file before it is replaced
		return 0, err
	}
	info, err := os.Stat(temporary)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(temporary))
	}
	return info.Size(), syncDir(filepath.Dir(path))
}

func (o Options) compacted(e CompactEvent) {
	if o.Observer != nil && o.Observer.Compacted != nil {
		o.Observer.Compacted(e)
	}
}
