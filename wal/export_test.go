// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"time"

	"go.etcd.io/bbolt"
)

// SealRecord lets tests write records of other versions.
var SealRecord = sealRecord

// OnCommit replaces the func by which f commits a transaction. Call it before the first write.
func (f *File) OnCommit(commit func(*bbolt.Tx) error) { f.commitTx = commit }

// Build writes an empty log at path and calls filling before its content is on disk.
func Build(path string, filling func()) error {
	return build(path, func(*filler) error {
		filling()
		return nil
	})
}

// OpenStore opens and closes the database of a log.
func OpenStore(path string) error {
	s, err := openStore(path, time.Second, 1<<30)
	if err != nil {
		return err
	}
	return s.close()
}
