// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"
	"iter"
)

// File is a Log in one bbolt file, owned by one process. Concurrent calls share commits: whatever waits while one commit
// is on its way to disk is written by the next, so that a lone call waits for nobody and many cost little more than one.
type File struct{}

var _ Log = (*File)(nil)

var errNotYet = errors.New("not built")

// Open opens or creates the log at path, with directories that are missing. Beside it lies path.lock, which names the
// process that holds the log. Errors: *LockedError (says which process holds it), *SchemaError (a newer or foreign file,
// left as it is), *CorruptError (the file was set aside, its new name is in the error), *FieldError, or the file
// system's with the path and a remedy. It waits at most Options.LockTimeout for another process. Close the File.
func Open(path string, opts Options) (*File, error) { return nil, errNotYet }

// Begin implements [Log].
func (f *File) Begin(ctx context.Context, e Entry) (Entry, error) { return Entry{}, errNotYet }

// Advance implements [Log].
func (f *File) Advance(ctx context.Context, e Entry) (Entry, error) { return Entry{}, errNotYet }

// End implements [Log].
func (f *File) End(ctx context.Context, e Entry, outcome []byte) error { return errNotYet }

// Open implements [Log].
func (f *File) Open(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) { yield(Entry{}, errNotYet) }
}

// Find implements [Log].
func (f *File) Find(ctx context.Context, key string) (Entry, error) { return Entry{}, errNotYet }

// Verify reads every record and every page and returns what is damaged, joined, each a *CorruptError; nil means the
// whole file is sound. The log can be used meanwhile.
func (f *File) Verify(ctx context.Context) error { return errNotYet }

// Backup writes a consistent copy to path, which must not exist, while the log is in use. The copy is durable when it
// returns nil. It is a log of its own: never open original and copy for the same work at once.
func (f *File) Backup(ctx context.Context, path string) error { return errNotYet }

// Close waits for calls in progress, then releases the file. It is idempotent.
func (f *File) Close() error { return errNotYet }
