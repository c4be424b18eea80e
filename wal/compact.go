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

// Compact rewrites the log without its free space, which bbolt keeps for later and never gives back by itself. It also
// restores damaged idempotency keys from their entries. Open does the same for files that Options.CompactAbove describes.
//
// Calls that write wait meanwhile, calls that read do not. A crash at any moment leaves the old file or the new one, both
// whole and with the same content. If it returns an error the log goes on as before, unless that is ErrClosed: then the
// new file is in place or not, nothing is lost, and the log must be reopened. Where a file in use cannot be replaced
// (Windows), it returns an error; only Open compacts there.
func (f *File) Compact(ctx context.Context) error {
	return f.turn(ctx, "compact", func() error { return f.compact(ctx) })
}

// compact is run by the owner, so that nothing is written meanwhile.
func (f *File) compact(ctx context.Context) (err error) {
	if err := f.refusal(); err != nil {
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
		f.latch(err)
		return f.refusal()
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
	// From here on the old file must not be written any more.
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
		_ = old.close() // nothing of it is needed any more
	})
	return nil
}

// lapse latches the File when it cannot be known which file the path will name after a crash.
func (f *File) lapse(err error) error {
	f.latch(fmt.Errorf("compact: %w", err))
	return f.refusal()
}

func (s *store) isAt(path string) bool {
	a, errA := s.file.Stat()
	b, errB := os.Stat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// sizeOf is for people: an error reads as nothing.
func sizeOf(file *os.File) int64 {
	info, err := file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// compactAtOpen compacts a file that is mostly free space. A log that could not be compacted works as well as before.
// The caller holds the lock.
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

// rewrite replaces a log by a copy of it and returns the new size. The caller holds the lock.
func rewrite(path string) (size int64, err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0) // what may not be written is not replaced either
	if err != nil {
		return 0, err
	}
	m, err := metaOf(file, 0)
	var temporary string
	if err == nil {
		temporary, err = prepare(path, func(w *filler) error { return copyTo(context.Background(), w, file, m) })
	}
	if err = errors.Join(err, file.Close()); err != nil { // closed before it is replaced
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
