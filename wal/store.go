// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
)

// store is the bbolt database of a File.
type store struct {
	db      *bbolt.DB
	file    *os.File       // the file that bbolt has open
	last    atomic.Uint64  // the newest committed transaction
	readers sync.WaitGroup // increased only under the File's mutex, while the File uses this store

	// bbolt begins and ends transactions under a lock that it keeps if it panics. Later callers would wait for
	// that lock for ever. So they wait for turn instead, and get an error if wedged is set.
	turn   sync.Mutex
	wedged bool // bbolt panicked with its locks held: the store can be neither used nor closed
}

func openStore(path string, timeout time.Duration, maxSize int64) (*store, error) {
	s := &store{}
	options := boltOptions(timeout, maxSize)
	options.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		// The log exists now. bbolt must not create an empty file, which would be a log without a schema.
		file, err := os.OpenFile(name, flag&^os.O_CREATE, mode)
		s.file = file
		return file, err
	}
	err := guard(func() (err error) {
		if s.db, err = bbolt.Open(path, 0o600, options); err != nil {
			return err
		}
		s.db.AllocSize = allocSize
		return s.db.View(func(tx *bbolt.Tx) error {
			s.last.Store(uint64(tx.ID()))
			return nil
		})
	})
	if errors.Is(err, errDamaged) && s.file != nil {
		_ = s.file.Close() // also releases bbolt's own lock
	}
	return s, err
}

// check detects damaged meta pages before bbolt reads them. bbolt would either panic with locks held, which
// blocks every later call for ever, or use the older of the two pages, which would undo a commit.
func (s *store) check() error {
	last := s.last.Load() // read before the pages: a commit may end in between
	metas, damage, err := readMetas(s.file)
	switch {
	case errors.Is(err, errNotBolt), err == nil && len(metas) == 0:
		return fmt.Errorf("%w: both meta pages were overwritten", errDamaged)
	case err != nil:
		return err
	case metas[0].txid < last:
		return fmt.Errorf("%w: the last commit is gone: %w", errDamaged, errors.Join(damage, fmt.Errorf("transaction %d of %d", metas[0].txid, last)))
	}
	return nil
}

// begin checks the meta pages and begins a transaction.
func (s *store) begin(writable bool) (tx *bbolt.Tx, err error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.wedged {
		return nil, errDamaged
	}
	err = guard(func() (err error) {
		tx, err = s.db.Begin(writable)
		return err
	})
	s.wedged = errors.Is(err, errDamaged)
	return tx, err
}

// end rolls back tx. It changes nothing in a store that can no longer be used.
func (s *store) end(tx *bbolt.Tx) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.wedged {
		return errDamaged
	}
	err := guard(tx.Rollback)
	s.wedged = errors.Is(err, errDamaged)
	return err
}

func (s *store) isWedged() bool {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.wedged
}

// close releases the file. It does nothing if bbolt has panicked with locks held.
func (s *store) close() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.wedged {
		return nil
	}
	return guard(s.db.Close)
}
