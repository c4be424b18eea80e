// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import "time"

// pruneStep is the number of history records that each commit checks. The commit checks two more records for each call
// that shares it. A call adds at most one record to the history, so the checks are faster than the growth of the
// history.
const pruneStep = 32

// prune checks ended entries, beginning at the name in after (nil: at the first entry). calls is the number of calls
// that share the commit. prune deletes the entries that ended longer than retention ago, and their idempotency keys.
// It keeps damaged records. It returns the name of the last entry that it checked, or nil if it has reached the end of
// the history.
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
