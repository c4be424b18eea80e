// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Names of the buckets and of the records in metaBucket. The marker distinguishes our files from those of other
// programs that use bbolt, even if the rest of a file is unreadable.
const (
	metaBucket = "meta"
	opsBucket  = "ops"  // from ID to open entry
	histBucket = "hist" // from ID to ended entry
	idemBucket = "idem" // from idempotency key to ID

	formatName = "format"
	schemaName = "schema"
	censusName = "census"

	marker        = "atoll.dev/wal"
	schemaVersion = 1
)

// findings are the result of reading a whole file.
type findings struct {
	damage   []*CorruptError // all damage found
	broken   error           // damage of the page tree, the marker or the schema version: bbolt must not map the file
	misnamed bool            // some names are damaged or out of order: bbolt's search would miss their records
	size     int64           // of the file
	used     int64           // bytes of pages in use
}

// inspect reads all of a file, without a lock and without bbolt. The pages of the transaction txid must not change
// while inspect runs; a txid of zero selects the newest transaction. The error is a *SchemaError, errOvertaken or a
// read error.
func inspect(path string, file *os.File, txid uint64) (findings, error) {
	var found findings
	info, err := file.Stat()
	if err != nil {
		return found, err
	}
	found.size = info.Size()
	metas, damage, err := readMetas(file)
	if err != nil && !errors.Is(err, errNotBolt) {
		return found, err
	}
	short, cutErr := isCut(file, info.Size(), metas)
	switch {
	case cutErr != nil:
		return found, cutErr
	case short && len(metas) == 0:
		found.broken = fmt.Errorf("the file was cut to %d bytes", info.Size())
		found.add(&CorruptError{Path: path, Err: found.broken})
		return found, nil
	case err != nil:
		return found, foreign(path, "not a bbolt file")
	}
	if damage != nil {
		found.add(&CorruptError{Path: path, Err: damage})
	}
	var m meta
	if i := slices.IndexFunc(metas, func(m meta) bool { return txid == 0 || m.txid == txid }); i >= 0 {
		m = metas[i]
	}
	switch {
	case m.pageSize != 0:
	case txid != 0:
		return found, errOvertaken
	default:
		found.broken = damage
		return found, unlessOurs(path, file)
	}
	r := &inspection{path: path, findings: &found, short: short}
	walked, err := walk(file, info.Size(), m, r.visit)
	if err != nil {
		found.broken = err
		found.add(&CorruptError{Path: path, Err: err})
	}
	found.used = int64(len(walked.seen)) * m.pageSize
	found.misnamed = found.misnamed || walked.misordered
	return found, r.finish(file)
}

// errOvertaken means that newer commits have replaced the requested meta page.
var errOvertaken = errors.New("overtaken by newer commits")

func foreign(path, what string) error {
	return &SchemaError{Path: path, Found: what, Want: fmt.Sprintf("%s schema %d", marker, schemaVersion)}
}

// unlessOurs returns a *SchemaError if a damaged file does not contain our marker.
func unlessOurs(path string, file io.ReaderAt) error {
	const chunk = 1 << 20
	buf := make([]byte, chunk+len(marker))
	for at := int64(0); ; at += chunk {
		n, err := file.ReadAt(buf, at)
		if bytes.Contains(buf[:n], []byte(marker)) {
			return nil
		}
		if err == io.EOF {
			return foreign(path, "a bbolt file without the marker of a log")
		} else if err != nil {
			return err
		}
	}
}

func (f *findings) add(e *CorruptError) { f.damage = append(f.damage, e) }

// inspection collects findings from the key-value pairs of a file.
type inspection struct {
	path     string
	findings *findings
	short    bool // the marker may have been in the part of the file that is missing

	format, schema []byte
	stored         census
	storedErr      error
	counted        census // computed from the keys under which the records are stored
	meant          census // computed from the names that the records repeat
	storedSeen     bool
}

func (r *inspection) visit(bucket string, key, value []byte) {
	switch bucket {
	case metaBucket:
		switch string(key) {
		case formatName:
			r.format = bytes.Clone(value)
		case schemaName:
			r.schema = bytes.Clone(value)
		case censusName:
			r.storedSeen = true
			r.stored, r.storedErr = decodeCensus(value)
		}
	case opsBucket, histBucket:
		e, err := decodeEntry(value)
		r.count(bucket, key, e.ID, err, &CorruptError{Path: r.path, ID: string(key), Err: err})
	case idemBucket:
		name, _, err := decodeName(value)
		r.count(bucket, key, name, err, &CorruptError{Path: r.path, Key: string(key), Err: err})
	}
}

// count compares name, the name in a record, with key, the name under which the record was found. If the two differ,
// or if err is not nil because the record is damaged, count adds corrupt to the findings.
func (r *inspection) count(bucket string, key []byte, name string, err error, corrupt *CorruptError) {
	r.counted.add(bucket, key)
	if err != nil {
		r.meant.add(bucket, key)
		r.findings.add(corrupt)
		return
	}
	r.meant.add(bucket, []byte(name))
	if name == string(key) {
		return
	}
	corrupt.Err = fmt.Errorf("found under the damaged name %q", key)
	if bucket == idemBucket {
		corrupt.Key = name
	} else {
		corrupt.ID = name
	}
	r.findings.add(corrupt)
	r.findings.misnamed = true
}

func (r *inspection) finish(file io.ReaderAt) error {
	f := r.findings
	format, err := openRecord(r.format)
	if err != nil || string(format) != marker {
		if f.broken == nil {
			f.broken = errors.New("the marker of the file is damaged")
			f.add(&CorruptError{Path: r.path, Err: f.broken})
		}
		if r.short {
			return nil
		}
		return unlessOurs(r.path, file)
	}
	schema, err := openRecord(r.schema)
	version, n := binary.Uvarint(schema)
	switch {
	case err == nil && n > 0 && version != schemaVersion:
		return foreign(r.path, fmt.Sprintf("%s schema %d", marker, version))
	case f.broken != nil:
		return nil
	case err != nil || n <= 0:
		f.broken = errors.New("the schema version of the file is damaged")
		f.add(&CorruptError{Path: r.path, Err: f.broken})
	case r.storedErr != nil || !r.storedSeen:
		f.add(&CorruptError{Path: r.path, Err: errors.New("the count of entries is damaged")})
	case r.stored != r.counted && r.stored != r.meant:
		f.add(&CorruptError{Path: r.path, Err: fmt.Errorf("%d names were written and %d are here: some entries are lost", r.stored.count, r.counted.count)})
	}
	return nil
}
