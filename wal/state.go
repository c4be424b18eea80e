// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
)

// state is the log as one transaction reads and changes it.
type state struct {
	path                  string
	now                   time.Time
	meta, ops, hist, idem *bbolt.Bucket
	census                census
	counting              bool // the stored census is valid
	changed               bool
}

func newState(f *File, tx *bbolt.Tx) *state {
	s := &state{
		path: f.path, now: time.Now().UTC(),
		meta: tx.Bucket([]byte(metaBucket)), ops: tx.Bucket([]byte(opsBucket)),
		hist: tx.Bucket([]byte(histBucket)), idem: tx.Bucket([]byte(idemBucket)),
	}
	c, err := decodeCensus(s.meta.Get([]byte(censusName)))
	s.census, s.counting = c, err == nil
	return s
}

// finish writes the census at the end of a transaction with changes.
func (s *state) finish() error {
	if !s.counting {
		return nil
	}
	return s.meta.Put([]byte(censusName), s.census.encode())
}

func (s *state) put(b *bbolt.Bucket, bucket, key string, record []byte) error {
	if b.Get([]byte(key)) == nil {
		s.census.add(bucket, []byte(key))
	}
	s.changed = true
	return b.Put([]byte(key), record)
}

func (s *state) remove(b *bbolt.Bucket, bucket, key string) error {
	if b.Get([]byte(key)) == nil {
		return nil
	}
	s.census.remove(bucket, []byte(key))
	s.changed = true
	return b.Delete([]byte(key))
}

// byID returns the open or ended entry of an ID. The error is ErrNotFound or a *CorruptError.
func (s *state) byID(id string) (Entry, error) {
	for _, bucket := range []*bbolt.Bucket{s.ops, s.hist} {
		if record := bucket.Get([]byte(id)); record != nil {
			return s.decode([]byte(id), record)
		}
	}
	return Entry{}, ErrNotFound
}

// decode decodes a record and checks that it contains the name under which it was found.
func (s *state) decode(name, record []byte) (Entry, error) {
	e, err := decodeEntry(record)
	if err != nil {
		return Entry{ID: string(name)}, &CorruptError{Path: s.path, ID: string(name), Err: err}
	}
	if e.ID != string(name) {
		return e, &CorruptError{Path: s.path, ID: e.ID, Err: errors.New("found under the damaged name " + strconv.Quote(string(name)))}
	}
	return e, nil
}

// byKey returns the entry with an idempotency key. The error is ErrNotFound or a *CorruptError.
func (s *state) byKey(key string) (Entry, error) {
	record := s.idem.Get([]byte(key))
	if record == nil {
		return Entry{}, ErrNotFound
	}
	name, id, err := decodeName(record)
	if err == nil && name != key {
		err = errors.New("found under the key of another")
	}
	if err != nil {
		return Entry{Key: key}, &CorruptError{Path: s.path, Key: key, Err: err}
	}
	e, err := s.byID(id)
	if errors.Is(err, ErrNotFound) || err == nil && e.Key != key {
		return Entry{ID: id, Key: key}, &CorruptError{Path: s.path, ID: id, Key: key, Err: errors.New("no entry has this key")}
	}
	return e, err
}

func (s *state) begin(e Entry) (Entry, error) {
	for _, known := range []func() (Entry, error){
		func() (Entry, error) { return s.byID(e.ID) },
		func() (Entry, error) {
			if e.Key == "" {
				return Entry{}, ErrNotFound
			}
			return s.byKey(e.Key)
		},
	} {
		if stored, err := known(); err == nil {
			return stored, ErrExists
		} else if !errors.Is(err, ErrNotFound) {
			return stored, err
		}
	}
	e.Data = bytes.Clone(e.Data)
	e.Outcome, e.Ended = nil, time.Time{}
	if e.Began.IsZero() {
		e.Began = s.now
	}
	e.Began = e.Began.UTC().Round(0)
	if err := s.write(&e); err != nil {
		return Entry{}, err
	}
	if e.Key == "" {
		return e, nil
	}
	return e, asStorageError(s.put(s.idem, idemBucket, e.Key, encodeName(e.Key, e.ID)))
}

func (s *state) advance(e Entry) (Entry, error) {
	old, err := s.byID(e.ID)
	if err != nil {
		return old, err
	}
	if !old.Ended.IsZero() || old.Version != e.Version {
		return old, ErrStale
	}
	old.Owner, old.State, old.Data = e.Owner, e.State, bytes.Clone(e.Data)
	return old, s.write(&old)
}

func (s *state) end(e Entry, outcome []byte) error {
	old, err := s.byID(e.ID)
	switch {
	case errors.Is(err, ErrNotFound), err == nil && !old.Ended.IsZero():
		return nil
	case err != nil:
		return err
	case old.Version != e.Version:
		return ErrStale
	}
	old.Outcome, old.Ended = bytes.Clone(outcome), s.now
	if err := s.remove(s.ops, opsBucket, old.ID); err != nil {
		return asStorageError(err)
	}
	return asStorageError(s.put(s.hist, histBucket, old.ID, encodeEntry(old)))
}

// write sets the next version of an open entry and stores it.
func (s *state) write(e *Entry) error {
	n, err := s.ops.NextSequence()
	if err != nil {
		return asStorageError(err)
	}
	e.Version = strconv.FormatUint(n, 10)
	return asStorageError(s.put(s.ops, opsBucket, e.ID, encodeEntry(*e)))
}

// storageError is an error of bbolt within a transaction. The transaction cannot be committed then.
type storageError struct{ err error }

func (e *storageError) Error() string { return e.err.Error() }
func (e *storageError) Unwrap() error { return e.err }

func asStorageError(err error) error {
	if err == nil {
		return nil
	}
	return &storageError{err}
}
