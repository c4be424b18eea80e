// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// makeDirs creates the missing directories above path and makes their names durable.
func makeDirs(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := makeDirs(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// create makes a log under a temporary name, lets fill write into it, and renames it once it is on disk: a file at path
// is whole, whatever happens. The caller holds the lock.
func create(path string, fill func(*bbolt.Tx) error) error {
	temporary := path + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	db, err := bbolt.Open(temporary, 0o600, boltOptions(time.Second, 0))
	if err != nil {
		return err
	}
	db.AllocSize = allocSize
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{opsBucket, histBucket, idemBucket} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		b, err := tx.CreateBucket([]byte(metaBucket))
		if err != nil {
			return err
		}
		return errors.Join(
			b.Put([]byte(formatName), sealRecord([]byte(marker))),
			b.Put([]byte(schemaName), sealRecord(binary.AppendUvarint(nil, schemaVersion))),
			b.Put([]byte(censusName), new(census{}).encode()),
			fill(tx),
		)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// asideName is a free name for a damaged log.
func asideName(path string) string {
	stamp := path + ".damaged-" + time.Now().UTC().Format("20060102T150405Z")
	name := stamp
	for n := 1; ; n++ {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
		name = fmt.Sprintf("%s-%d", stamp, n)
	}
}

// setAside renames a damaged log. The caller holds the lock.
func setAside(path string) (string, error) {
	name := asideName(path)
	if err := os.Rename(path, name); err != nil {
		return "", err
	}
	return name, syncDir(filepath.Dir(path))
}

// lastSetAside returns the newest damaged log of path, or nothing.
func lastSetAside(path string) (string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	prefix := filepath.Base(path) + ".damaged-"
	var names []string
	for _, e := range entries {
		if n := e.Name(); len(n) > len(prefix) && n[:len(prefix)] == prefix {
			names = append(names, filepath.Join(filepath.Dir(path), n))
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return slices.Max(names), nil
}

func boltOptions(timeout time.Duration, maxSize int64) *bbolt.Options {
	return &bbolt.Options{
		Timeout:         max(timeout, time.Millisecond), // zero would wait for ever
		FreelistType:    bbolt.FreelistMapType,
		NoFreelistSync:  true,     // rebuilt at open: one page kind less that can be damaged
		InitialMmapSize: 16 << 20, // growing the map waits for readers
		MaxSize:         int(maxSize),
		NoStatistics:    true,
	}
}
