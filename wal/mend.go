// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"go.etcd.io/bbolt"
)

// mend rewrites a log in which names are damaged, from the records, which repeat them. Every pair is taken over: those
// whose record is damaged under the name that they have. The old file stays beside it. It returns what is wrong with the
// new one and that the old one was damaged. The caller holds the lock.
func mend(path string, old findings) (findings, error) {
	file, err := os.Open(path)
	if err != nil {
		return old, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return old, err
	}
	metas, _, err := readMetas(file)
	if err != nil {
		return old, err
	}
	aside := asideName(path)
	if err := os.Link(path, aside); err != nil {
		return old, err
	}
	err = create(path, func(tx *bbolt.Tx) error {
		var errs []error
		var last uint64
		_, err := walk(file, info.Size(), metas[0], func(bucket string, key, value []byte) {
			name, version := recordName(bucket, value)
			if name == "" {
				name = string(key)
			}
			last = max(last, version)
			errs = append(errs, tx.Bucket([]byte(bucket)).Put([]byte(name), bytes.Clone(value)))
		})
		return errors.Join(append(errs, err, tx.Bucket([]byte(opsBucket)).SetSequence(last))...)
	})
	if err != nil {
		return old, errors.Join(err, os.Remove(aside))
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return old, err
	}
	found, err := inspectPath(path)
	found.add(&CorruptError{Path: path, Err: fmt.Errorf("%d names were damaged and restored from their entries, the old file is %s", len(old.damage), aside)})
	return found, err
}

// recordName returns the name that a sound record gives itself, and its version.
func recordName(bucket string, record []byte) (name string, version uint64) {
	switch bucket {
	case opsBucket, histBucket:
		if e, err := decodeEntry(record); err == nil {
			version, _ = strconv.ParseUint(e.Version, 10, 64)
			return e.ID, version
		}
	case idemBucket:
		if key, _, err := decodeName(record); err == nil {
			return key, 0
		}
	}
	return "", 0
}
