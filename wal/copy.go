// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
)

// build writes a new log to path and calls fill to write its content. path must be unused. On success the file is
// synced, but its directory entry may not be. On an error build removes the file.
func build(path string, fill func(*filler) error) (err error) {
	options := boltOptions(time.Second, 0)
	options.NoSync, options.NoGrowSync = true, true // sync once, at the end
	db, err := bbolt.Open(path, 0o600, options)
	if err != nil {
		return err
	}
	db.AllocSize = allocSize
	w := &filler{db: db}
	err = errors.Join(w.begin(), w.schema())
	if err == nil {
		err = fill(w)
	}
	if err != nil {
		w.abort()
	} else if err = w.finish(); err == nil {
		err = db.Sync()
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// fillStep is the number of bytes after which a filler begins a new transaction. It bounds the filler's memory.
const fillStep = 4 << 20

// filler writes the content of a log that is not in use yet, in transactions of bounded size.
type filler struct {
	db   *bbolt.DB
	tx   *bbolt.Tx
	size int
}

func (w *filler) begin() (err error) {
	w.tx, err = w.db.Begin(true)
	return err
}

func (w *filler) schema() error {
	if w.tx == nil {
		return nil
	}
	for _, name := range []string{metaBucket, opsBucket, histBucket, idemBucket} {
		if _, err := w.tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	return errors.Join(
		w.put(metaBucket, []byte(formatName), sealRecord([]byte(marker))),
		w.put(metaBucket, []byte(schemaName), sealRecord(binary.AppendUvarint(nil, schemaVersion))),
		w.put(metaBucket, []byte(censusName), new(census{}).encode()),
	)
}

// put stores a copy of key and value in a bucket.
func (w *filler) put(bucket string, key, value []byte) error {
	if w.size > fillStep {
		if err := errors.Join(w.finish(), w.begin()); err != nil {
			return err
		}
	}
	w.size += len(key) + len(value)
	b := w.tx.Bucket([]byte(bucket))
	b.FillPercent = 0.9 // the keys are written in order
	return b.Put(bytes.Clone(key), bytes.Clone(value))
}

func (w *filler) finish() error {
	if w.tx == nil {
		return nil
	}
	tx := w.tx
	w.tx, w.size = nil, 0
	return tx.Commit()
}

// abort discards the open transaction.
func (w *filler) abort() {
	if w.tx != nil {
		_ = w.tx.Rollback()
		w.tx = nil
	}
}

// create writes a log under a temporary name and renames it once it is on disk. A file at path is therefore always
// complete. The caller holds the lock.
func create(path string, fill func(*filler) error) error {
	temporary, err := prepare(path, fill)
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return syncDir(filepath.Dir(path))
}

// prepare writes the log that will replace path and returns its temporary name.
func prepare(path string, fill func(*filler) error) (temporary string, err error) {
	temporary = path + ".new"
	if err := discardPrepared(path); err != nil {
		return "", err
	}
	if err := build(temporary, fill); err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err == nil {
		if err := os.Chmod(temporary, info.Mode().Perm()); err != nil {
			return "", errors.Join(err, os.Remove(temporary))
		}
	}
	return temporary, nil
}

// discardPrepared removes the file that prepare leaves behind if the process crashes. This file was never in use as a
// log.
func discardPrepared(path string) error {
	if err := os.Remove(path + ".new"); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// publish writes a log at path, which must not exist.
func publish(path string, fill func(*filler) error) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fs.ErrExist)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	temporary := filepath.Join(dir, "log")
	if err = build(temporary, fill); err == nil {
		err = errors.Join(os.Link(temporary, path), os.Remove(temporary)) // unlike a rename, a link fails if path exists now
	}
	return errors.Join(err, os.Remove(dir), syncDir(filepath.Dir(path)))
}

// copyTo copies all pairs below a meta page to a new log, without free space. An undamaged record repeats its name,
// and the record of an entry also repeats the idempotency key: copyTo takes names and keys from these records. It
// copies damaged records unchanged.
func copyTo(ctx context.Context, w *filler, file *os.File, m meta) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var failed error
	put := func(bucket string, key, value []byte) {
		if failed == nil {
			failed = w.put(bucket, key, value)
		}
	}
	var last uint64
	restored := map[string]bool{}
	walked, err := walk(file, info.Size(), m, func(bucket string, key, value []byte) {
		if ctx.Err() != nil {
			failed = context.Cause(ctx)
		}
		if failed != nil {
			return
		}
		switch bucket {
		case opsBucket, histBucket:
			e, err := decodeEntry(value)
			if err != nil {
				break
			}
			version, _ := strconv.ParseUint(e.Version, 10, 64)
			last = max(last, version)
			key = []byte(e.ID)
			if e.Key != "" {
				put(idemBucket, []byte(e.Key), encodeName(e.Key, e.ID))
				restored[e.Key] = true
			}
		case idemBucket:
			if restored[string(key)] {
				return
			}
			if name, _, err := decodeName(value); err == nil {
				key = []byte(name)
			}
		}
		put(bucket, key, value)
	})
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	return w.tx.Bucket([]byte(opsBucket)).SetSequence(max(last, walked.sequences[opsBucket]))
}

// metaOf returns the meta page of the transaction txid. For a txid of zero it returns the newest meta page. The error
// is errOvertaken if newer commits have replaced the page.
func metaOf(file *os.File, txid uint64) (meta, error) {
	metas, damage, err := readMetas(file)
	if err != nil {
		return meta{}, err
	}
	for _, m := range metas {
		if txid == 0 || m.txid == txid {
			return m, nil
		}
	}
	if len(metas) == 0 {
		return meta{}, fmt.Errorf("both meta pages are damaged: %w", damage)
	}
	return meta{}, errOvertaken
}
