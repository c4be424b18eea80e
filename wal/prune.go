// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import "time"

// pruneStep bounds the work that a commit does on top. Each operation adds one record, so the history is gone over many
// times before it can grow by what expired.
const pruneStep = 32

// prune forgets ended entries that are older than retention, among the next few after the name at which it stopped last
// time, and returns where it stopped. Damaged records stay.
func (s *state) prune(after []byte, retention time.Duration) ([]byte, error) {
	c := s.hist.Cursor()
	k, v := c.First()
	if after != nil {
		if k, v = c.Seek(after); k == nil {
			k, v = c.First()
		}
	}
	var expired []Entry // removed afterwards: a cursor skips what follows a deletion
	var last []byte
	for n := 0; n < pruneStep && k != nil; n++ {
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
			return last, stored(err)
		}
		if e.Key == "" {
			continue
		}
		if _, id, err := decodeName(s.idem.Get([]byte(e.Key))); err == nil && id == e.ID {
			if err := s.remove(s.idem, idemBucket, e.Key); err != nil {
				return last, stored(err)
			}
		}
	}
	return last, nil
}
