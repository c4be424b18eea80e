// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"encoding/json"
	"time"

	"github.com/atoll-dev/atoll/internal/backoff"
)

// repetition counts how often the same status was written again because another client had replaced it. The pauses
// between such writes double, from one second to five minutes, so that two writers do not load the peer.
type repetition struct {
	status string
	times  int
	at     time.Time // of the last write
}

const (
	firstRepetition = time.Second
	lastRepetition  = 5 * time.Minute
)

// pause returns how long to wait before the status is written, which is zero for another status than the last one.
func (h *history) pause(key string, s status, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, ok := h.wrote[key]
	if !ok || r.status != fingerprint(s) || r.times < 2 {
		return 0
	}
	return r.at.Add(backoff.After(r.times-1, firstRepetition, lastRepetition)).Sub(now)
}

// written records a write. A status that stayed for longer than the longest pause was not replaced.
func (h *history) written(key string, s status, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.wrote[key]
	if text := fingerprint(s); r.status != text || now.Sub(r.at) > lastRepetition {
		r = repetition{status: text}
	}
	r.times, r.at = r.times+1, now
	h.wrote[key] = r
}

// fingerprint identifies a status without the times in it.
func fingerprint(s status) string {
	c := s
	c.Conditions = nil
	for _, condition := range s.Conditions {
		condition.LastTransitionTime.Reset()
		c.Conditions = append(c.Conditions, condition)
	}
	text, _ := json.Marshal(c) // cannot fail: strings and numbers only
	return string(text)
}
