// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import "bytes"

// These limit the entries and bytes of one read transaction of Open.
const (
	readEntries = 64
	readBytes   = 4 << 20
)

// listed is one result that Open yields.
type listed struct {
	entry Entry
	err   error
}

// openAfter returns one page of open entries, beginning after a name; nil means from the first entry. last is the
// name to continue from, or nil at the end.
func (s *state) openAfter(after []byte) (page []listed, last []byte) {
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
		page = append(page, listed{e, err})
		last, size = bytes.Clone(k), size+len(v)
	}
	return page, nil
}
