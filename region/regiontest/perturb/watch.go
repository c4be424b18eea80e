// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/requestinfo"
)

// gap is a period in which a loop cannot read a resource, and after which the history is gone.
type gap struct {
	until   time.Time
	expired bool // a watch after the gap was rejected
}

// closed reports whether the resource cannot be read now. A nil gap is never closed.
func (g *gap) closed() bool { return g != nil && time.Now().Before(g.until) }

func (r *run) gap(p Point) *gap {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gaps[p]
}

// expires reports whether the server rejects a watch that resumes at p with 410. It returns true once
// for each gap.
func (r *run) expires(p Point) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gaps[p]
	if g == nil || g.expired {
		return false
	}
	g.expired = true
	return true
}

func (r *run) open(p Point) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gaps[p] = &gap{until: time.Now().Add(r.scenario.lateWatch())}
}

func (d *door) watch(r *http.Request, info requestinfo.Info) (*http.Response, error) {
	p := d.of("watch", info)
	if d.run.gap(p).closed() {
		return nil, reset(r)
	}
	if rv := r.URL.Query().Get("resourceVersion"); rv != "" && rv != "0" && d.run.expires(p) {
		return status(r, http.StatusGone, metav1.StatusReasonExpired, "too old resource version"), nil
	}
	resp, err := d.send(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	resp.Body = &stream{door: d, point: p, body: resp.Body, lines: bufio.NewReader(resp.Body), closed: make(chan struct{})}
	resp.ContentLength = -1
	return resp, nil
}

// stream is the body of a watch. One goroutine reads it, any goroutine may close it.
type stream struct {
	door  *door
	point Point
	body  io.ReadCloser
	lines *bufio.Reader
	rest  bytes.Buffer // of the event that is being read
	ended bool

	closed chan struct{}
	once   sync.Once
}

// Read implements io.Reader.
func (s *stream) Read(b []byte) (int, error) {
	for s.rest.Len() == 0 {
		if s.ended {
			return 0, io.EOF
		}
		line, err := s.lines.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		s.meet(line)
		if !s.ended {
			s.rest.Write(line)
		}
	}
	return s.rest.Read(b)
}

// meet applies the faults that are planned for an event.
func (s *stream) meet(line []byte) {
	var event struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(line, &event); err != nil || event.Type == "BOOKMARK" || event.Type == "ERROR" {
		return
	}
	_, faults := s.door.run.arrive(s.point, true)
	for _, f := range faults {
		switch f.Kind {
		case WatchLate:
			select {
			case <-time.After(s.door.run.scenario.lateWatch()):
			case <-s.closed:
			case <-s.door.instance.gone:
			}
		case WatchCut:
			s.ended = true
		case WatchGap:
			s.ended = true
			s.door.run.open(s.point)
		}
	}
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.body.Close()
}
