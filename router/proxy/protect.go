// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/atoll-dev/atoll/internal/apistatus"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// Protect returns a handler for requests about all regions, such as /regions/*/api/v1/pods. It runs serve after the
// guards, the Authenticator and Limits. Limits count such requests as if they went to one additional region. serve
// gets the caller's identity. If it returns an error, it must not have answered: an apierrors.APIStatus is the answer as
// it is, and any other error is answered without its text, which may name peers. The program defines the first two
// segments of the path; the rest is a path of an API server. The handler is safe for concurrent use if serve is.
func (p *Proxy) Protect(serve func(w http.ResponseWriter, r *http.Request, id router.Identity) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.run(w, r, func(w http.ResponseWriter, r *http.Request, e *Event) error {
			e.All = true
			id, err := p.caller(r)
			if err != nil {
				return err
			}
			g := p.requests
			if e.longRunning {
				g = p.streams
			}
			f := flow{everywhere, p.flow(r, id)}
			if err := g.enter(r.Context(), f); err != nil {
				return err
			}
			defer g.leave(f)
			if g == p.requests {
				ctx, progress := newProgress(r.Context(), w, &p.limits)
				defer progress.end()
				defer func() { e.Err = progress.explain(e.Err) }()
				w, r = &delivery{ResponseWriter: w, progress: progress}, r.WithContext(ctx)
			}
			limitBody(w, r, p.limits.Body)
			answer := &coded{ResponseWriter: w, event: e, began: func() { p.observer.began(r.Context(), e) }}
			err = serve(answer, r, id)
			if !isAnswer(err) {
				return err
			}
			e.Err = err
			apistatus.Refuse(answer, err)
			return nil
		})
	})
}

// isAnswer reports whether err is the answer of an API server. A region.Error may wrap the answer to another request, such
// as a probe.
func isAnswer(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		switch err.(type) { //nolint:errorlint // the outermost one decides
		case *region.Error:
			return false
		case apierrors.APIStatus:
			return true
		}
	}
	return false
}

// coded is a ResponseWriter that records the status code of the answer in event. It calls began once, when the answer
// begins.
type coded struct {
	http.ResponseWriter
	event *Event
	began func()
}

func (c *coded) WriteHeader(code int) {
	c.begin(code)
	c.ResponseWriter.WriteHeader(code)
}

func (c *coded) Write(b []byte) (int, error) {
	c.begin(http.StatusOK)
	return c.ResponseWriter.Write(b)
}

func (c *coded) begin(code int) {
	if c.event.Code == 0 {
		c.event.Code = code
		c.began()
	}
}

// Unwrap lets http.ResponseController flush.
func (c *coded) Unwrap() http.ResponseWriter { return c.ResponseWriter }
