// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"

	"go.etcd.io/bbolt"
)

// Discard removes the damaged entry id, open or ended, and the idempotency keys that lead to it. It is how a person settles
// a *CorruptError of one entry: what the operation had begun is then known only where it took effect, and its keys are
// free for a new one, so look there first. If no entry is called id but a damaged idempotency key is, that one is restored
// from its entry, or removed if there is none. Discard returns ErrNotDamaged for what can be read, which is never discarded,
// and ErrNotFound if there is nothing of that name. The other errors are those of Advance.
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
		return stored(err)
	}
	var keys []string // removed afterwards: a cursor skips what follows a deletion
	c := s.idem.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if _, owner, err := decodeName(v); err == nil && owner == id {
			keys = append(keys, string(k))
		}
	}
	for _, key := range keys {
		if err := s.remove(s.idem, idemBucket, key); err != nil {
			return stored(err)
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
				return stored(s.put(s.idem, idemBucket, key, encodeName(key, e.ID)))
			}
		}
	}
	return stored(s.remove(s.idem, idemBucket, key))
}
