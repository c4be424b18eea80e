// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"slices"
	"sync"
)

// slots limits the probes that run at once for one account. A key that gets no slot waits in its account's line. When a
// slot is free, it is granted to the first key of the line, which is queued again. It is safe for concurrent use.
type slots struct {
	most  int
	again func(key string)

	mu      sync.Mutex
	used    map[string]int      // by account; granted slots count
	waiting map[string][]string // keys by account, without repetition
	granted map[string]bool     // keys that have a slot and have not taken it yet
}

func newSlots(most int, again func(string)) *slots {
	return &slots{most: most, again: again, used: map[string]int{}, waiting: map[string][]string{}, granted: map[string]bool{}}
}

// take reports whether a probe of the key may run. If so, the caller calls give after it.
func (s *slots) take(account, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.granted[key] {
		delete(s.granted, key)
		return true
	}
	if s.used[account] < s.most {
		s.used[account]++
		return true
	}
	if !slices.Contains(s.waiting[account], key) {
		s.waiting[account] = append(s.waiting[account], key)
	}
	return false
}

// give returns a slot that was taken.
func (s *slots) give(account string) {
	s.mu.Lock()
	line := s.waiting[account]
	if len(line) == 0 {
		if s.used[account]--; s.used[account] == 0 {
			delete(s.used, account)
		}
		s.mu.Unlock()
		return
	}
	next := line[0]
	s.granted[next] = true
	if s.waiting[account] = line[1:]; len(line) == 1 {
		delete(s.waiting, account)
	}
	s.mu.Unlock()
	s.again(next)
}

// renounce returns a slot that was granted to the key, if it has one that it has not taken.
func (s *slots) renounce(account, key string) {
	s.mu.Lock()
	granted := s.granted[key]
	delete(s.granted, key)
	s.mu.Unlock()
	if granted {
		s.give(account)
	}
}
