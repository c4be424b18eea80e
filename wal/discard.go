// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"

	"go.etcd.io/bbolt"
)

// Discard removes the damaged entry id, open or ended, and its idempotency keys. With it an operator resolves a
// *CorruptError of one entry. Afterwards only the affected systems show how far the operation got, and a new
// operation may use its keys, so inspect those systems first. If id is not an entry but a damaged idempotency key,
// Discard restores that key from its entry, or removes the key if it has no entry. Discard returns ErrNotDamaged
// for a readable entry or key, and ErrNotFound if neither exists. The other errors are those of Advance.
func (f *File) Discard(ctx context.Context, id string) error {
	_, err := f.write(ctx, "discard", id, func(s *state) (Entry, error) { return Entry{}, s.discard(id) })
	return err
}

func (s *state) discard(id string) error {
	_, err := s.byID(id)
	if err == nil {
		return ErrNotDamaged
	}
	if errors.Is(err, ErrNotFound) {
		return s.discardKey(id)
	}
	if _, ok := errors.AsType[*CorruptError](err); !ok {
		return err
	}
	if err := errors.Join(s.remove(s.ops, opsBucket, id), s.remove(s.hist, histBucket, id)); err != nil {
		return asStorageError(err)
	}
	var keys []string // removed after the loop, because a cursor skips the pair after a deletion
	c := s.idem.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if _, owner, err := decodeName(v); err == nil && owner == id {
			keys = append(keys, string(k))
		}
	}
	for _, key := range keys {
		if err := s.remove(s.idem, idemBucket, key); err != nil {
			return asStorageError(err)
		}
	}
	return nil
}

func (s *state) discardKey(key string) error {
	record := s.idem.Get([]byte(key))
	if record == nil {
		return ErrNotFound
	}
	if name, _, err := decodeName(record); err == nil && name == key {
		return ErrNotDamaged
	}
	for _, entries := range []*bbolt.Bucket{s.ops, s.hist} {
		c := entries.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if e, err := s.decode(k, v); err == nil && e.Key == key {
				return asStorageError(s.put(s.idem, idemBucket, key, encodeName(key, e.ID)))
			}
		}
	}
	return asStorageError(s.remove(s.idem, idemBucket, key))
}
