// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import "bytes"

// These bound one read transaction of Open.
const (
	readEntries = 64
	readBytes   = 4 << 20
)

// opened is one element that Open yields.
type opened struct {
	entry Entry
	err   error
}

// openAfter returns the open entries after a name (nil: from the first), and the name to continue from (nil: at the
// end).
func (s *state) openAfter(after []byte) (page []opened, last []byte) {
	c := s.ops.Cursor()
	k, v := c.First()
	if after != nil {
		if k, v = c.Seek(after); bytes.Equal(k, after) {
			k, v = c.Next()
		}
	}
	for size := 0; k != nil; k, v = c.Next() {
		if len(page) == readEntries || size > readBytes {
			return page, last
		}
		e, err := s.decode(k, v)
		page = append(page, opened{e, err})
		last, size = bytes.Clone(k), size+len(v)
	}
	return page, nil
}
