// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// subject is what a probe was about. The result of a probe does not count for another subject.
type subject struct {
	uid    types.UID
	secret string // its name
}

// result is the result of the probes of one subject.
type result struct {
	version  v1alpha1.KubernetesVersion
	err      error     // of the last probe
	failures int       // failed probes in a row
	reached  bool      // a probe succeeded
	next     time.Time // when the next probe is due
}

// firstBackoff is the pause after the first failed probe.
const firstBackoff = time.Second

// after returns the result after another probe, which ended at now.
func (r result) after(version v1alpha1.KubernetesVersion, err error, now time.Time, opts *Options) result {
	if err == nil {
		return result{version: version, reached: true, next: now.Add(opts.Interval)}
	}
	failures := r.failures + 1
	return result{err: err, failures: failures, reached: r.reached, next: now.Add(backoff.After(failures, firstBackoff, opts.MaxBackoff))}
}

// history keeps the last result for each key. It is safe for concurrent use.
type history struct {
	mu    sync.Mutex
	kept  map[string]remembered
	wrote map[string]repetition
}

type remembered struct {
	subject subject
	result  result
}

// last returns the result for the subject, or nil.
func (h *history) last(key string, s subject) *result {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r, ok := h.kept[key]; ok && r.subject == s {
		return &r.result
	}
	return nil
}

func (h *history) keep(key string, s subject, r result) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept[key] = remembered{s, r}
}

func (h *history) forget(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.kept, key)
	delete(h.wrote, key)
}
