// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import "time"

// pruneStep is the number of history records that each commit checks. Each operation adds one record, so the whole
// history is scanned many times before the expired records double its length.
const pruneStep = 32

// prune checks the next pruneStep ended entries after the name after, and deletes those older than retention. It
// returns the name at which it stopped. It keeps damaged records.
func (s *state) prune(after []byte, retention time.Duration) ([]byte, error) {
	c := s.hist.Cursor()
	k, v := c.First()
	if after != nil {
		if k, v = c.Seek(after); k == nil {
			k, v = c.First()
		}
	}
	var expired []Entry // removed after the loop, because a cursor skips the pair after a deletion
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
