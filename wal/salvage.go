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
	"strconv"
	"time"
)

// Salvaged is the result of Salvage.
type Salvaged struct {
	Open   int             // open entries that were copied
	Ended  int             // ended entries that were copied
	Damage []*CorruptError // all damage found in the damaged file
}

// Salvage copies the readable entries of the damaged log at from, usually a file that Open has renamed, to a new
// log at to, which must not exist. The file at from is not changed. Names and idempotency keys are restored from
// the entries, which repeat them. Damaged entries are left out: the new log does not know them, so check
// Salvaged.Damage, and the affected systems.
//
// Errors: *LockedError if a process has from open, *SchemaError if from is not a log of this version, *CorruptError
// if both meta pages are damaged, so that no entry can be found, fs.ErrExist if a file exists at to, or a file system
// error. Salvage blocks for as long as storage needs.
func Salvage(ctx context.Context, from, to string) (Salvaged, error) {
	switch {
	case from == "":
		return Salvaged{}, &FieldError{Field: "from", Reason: "is empty, must name the damaged log"}
	case to == "":
		return Salvaged{}, &FieldError{Field: "to", Reason: "is empty, must name a new file"}
	}
	from, to = filepath.Clean(from), filepath.Clean(to)
	if _, err := os.Stat(from + ".lock"); err == nil {
		held, err := acquireLock(from, 2*time.Second)
		if err != nil {
			return Salvaged{}, err
		}
		defer func() { _ = held.release() }()
	}
	file, err := os.Open(from)
	if err != nil {
		return Salvaged{}, explain(from, "salvage", err)
	}
	defer func() { _ = file.Close() }()
	found, err := inspect(from, file, 0)
	if err != nil {
		if _, ok := errors.AsType[*SchemaError](err); ok {
			return Salvaged{}, err
		}
		return Salvaged{}, explain(from, "salvage", err)
	}
	m, err := metaOf(file, 0)
	if err != nil {
		return Salvaged{}, &CorruptError{Path: from, Err: err}
	}
	s := &salvage{seen: map[string]bool{}, result: Salvaged{Damage: found.damage}}
	err = publish(to, func(w *filler) error { return s.fill(ctx, w, file, found.size, m) })
	switch {
	case errors.Is(err, fs.ErrExist):
		return Salvaged{}, fmt.Errorf("wal %s: salvage: %w: move it away or choose another path", to, err)
	case err != nil:
		return Salvaged{}, explain(to, "salvage", err)
	}
	return s.result, nil
}

type salvage struct {
	result Salvaged
	census census
	seen   map[string]bool
}

func (s *salvage) fill(ctx context.Context, w *filler, file *os.File, size int64, m meta) error {
	var failed error
	var last uint64
	put := func(bucket, name string, value []byte) {
		s.census.add(bucket, []byte(name))
		if failed == nil {
			failed = w.put(bucket, []byte(name), value)
		}
	}
	walked, _ := walk(file, size, m, func(bucket string, _, value []byte) { // the error of walk is in Damage
		if ctx.Err() != nil {
			failed = context.Cause(ctx)
		}
		if failed != nil || bucket != opsBucket && bucket != histBucket {
			return
		}
		e, err := decodeEntry(value)
		if err != nil || s.seen[e.ID] {
			return
		}
		s.seen[e.ID] = true
		version, _ := strconv.ParseUint(e.Version, 10, 64)
		last = max(last, version)
		put(bucket, e.ID, value)
		if e.Key != "" {
			put(idemBucket, e.Key, encodeName(e.Key, e.ID))
		}
		if bucket == opsBucket {
			s.result.Open++
		} else {
			s.result.Ended++
		}
	})
	if failed == nil {
		failed = w.put(metaBucket, []byte(censusName), s.census.encode())
	}
	if failed != nil {
		return failed
	}
	return w.tx.Bucket([]byte(opsBucket)).SetSequence(max(last, walked.sequences[opsBucket]))
}
