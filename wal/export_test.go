// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import "go.etcd.io/bbolt"

// SealRecord lets tests write records of other versions.
var SealRecord = sealRecord

// OnCommit replaces how f commits a transaction. Call it before the first write.
func (f *File) OnCommit(commit func(*bbolt.Tx) error) { f.commitTx = commit }
