// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
)

// census is the number of the names in the buckets of entries and of idempotency keys, and the sum of their hashes.
// Each commit that changes them writes it. A damaged name, or a name lost with its page, is therefore detected and does
// not count as absent: bbolt has no checksums for keys.
type census struct{ count, sum uint64 }

func nameSum(bucket string, key []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(bucket))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(key)
	return h.Sum64()
}

func (c *census) add(bucket string, key []byte) {
	c.count++
	c.sum += nameSum(bucket, key)
}

func (c *census) remove(bucket string, key []byte) {
	c.count--
	c.sum -= nameSum(bucket, key)
}

func (c *census) encode() []byte {
	return sealRecord(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, c.count), c.sum))
}

func decodeCensus(record []byte) (census, error) {
	b, err := openRecord(record)
	if err != nil {
		return census{}, err
	}
	if len(b) != 16 {
		return census{}, errors.New("record is not a census")
	}
	return census{count: binary.LittleEndian.Uint64(b), sum: binary.LittleEndian.Uint64(b[8:])}, nil
}
