// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import "time"

// pruneStep is the number of history records that a commit checks, plus two for each call that shares the commit. A call
// adds at most one record to the history. So the history is checked faster than it grows.
const pruneStep = 32

// prune checks ended entries for a commit that so many calls share, beginning at the name in after (nil: at the first
// entry). It deletes the entries that ended longer than retention ago, and keeps damaged records. It returns the name of
// the last entry that it checked, or nil if it has reached the end of the history.
func (s *state) prune(after []byte, calls int, retention time.Duration) ([]byte, error) {
	c := s.hist.Cursor()
	k, v := c.First()
	if after != nil {
		if k, v = c.Seek(after); k == nil {
			k, v = c.First()
		}
	}
	var expired []Entry // removed after the loop, because a cursor skips the pair after a deletion
	var last []byte
	for n := 0; n < pruneStep+2*calls && k != nil; n++ {
		if e, err := s.decode(k, v); err == nil && s.now.Sub(e.Ended) > retention {
			expired = append(expired, e)
		}
		last = append(last[:0], k...)
		k, v = c.Next()
	}
	if k == nil {
		last = nil
	}
	for _, e := range expired {
		if err := s.remove(s.hist, histBucket, e.ID); err != nil {
			return last, asStorageError(err)
		}
		if e.Key == "" {
			continue
		}
		if _, id, err := decodeName(s.idem.Get([]byte(e.Key))); err == nil && id == e.ID {
			if err := s.remove(s.idem, idemBucket, e.Key); err != nil {
				return last, asStorageError(err)
			}
		}
	}
	return last, nil
}
