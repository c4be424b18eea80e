// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"io"
	"net/http"
	"net/http/httputil"
)

// exchange is one request, with the peer's answer to it.
type exchange struct {
	proxy     *Proxy
	target    target
	upgrade   string // the requested protocol; "" without an upgrade
	transport http.RoundTripper
	accepted  func(*http.Response) error // returns an error if the answer refuses the gateway itself
	event     *Event
	progress  *progress // nil: no time limits
	whole     bool      // progress covers the whole exchange, not only its beginning
	upload    *upload   // nil: the request has no body, or the body has no time limit
}

// watched runs the exchange with time limits on progress. The limits apply until the end of the exchange if whole
// is true, otherwise until the peer begins to answer.
func (x *exchange) watched(w http.ResponseWriter, r *http.Request, whole bool) {
	ctx, progress := newProgress(r.Context(), w, &x.proxy.limits)
	x.progress, x.whole = progress, whole
	defer progress.end()
	defer func() { x.event.Err = progress.explain(x.event.Err) }()
	r = r.WithContext(ctx)
	w = x.proxy.guards.hints(w)
	if whole {
		if hasBody(r) {
			x.upload = &upload{ReadCloser: r.Body, progress: progress, left: r.ContentLength}
			r.Body = x.upload
			defer x.upload.end()
		}
		w = &delivery{ResponseWriter: w, progress: progress}
	}
	progress.await(byPeer)
	x.run(w, r)
}

func (x *exchange) run(w http.ResponseWriter, r *http.Request) {
	reverse := &httputil.ReverseProxy{
		Rewrite:        x.rewrite,
		Transport:      x.transport,
		BufferPool:     x.proxy.buffers,
		ErrorLog:       quiet(x.proxy.log(r), x.event),
		ModifyResponse: x.judge,
		ErrorHandler:   x.refuse,
	}
	reverse.ServeHTTP(w, r)
}

// rewrite changes the client's request into the request to the peer. The transport adds the identity later, so that
// no header of the client can remove it.
func (x *exchange) rewrite(r *httputil.ProxyRequest) {
	out, guards := r.Out, &x.proxy.guards
	x.target.locate(out.URL)
	out.Host = ""
	guards.identity(out.Header)
	guards.origins(out.Header)
	guards.trailers(out)
	r.SetXForwarded()
	out.Header.Set("Audit-Id", x.event.AuditID)
	if x.upgrade != "" {
		out.Header.Set("Connection", "Upgrade")
		out.Header.Set("Upgrade", x.upgrade)
	}
	if out.Header.Get("Accept-Encoding") == "" {
		// Without this header, Go's transport would request gzip and decompress the answer here, for no benefit.
		out.Header.Set("Accept-Encoding", "identity")
	}
}

// judge returns an error for an answer that must not reach the client, and removes headers that the peer must not
// set.
func (x *exchange) judge(resp *http.Response) error {
	if x.progress != nil {
		x.progress.answer()
	}
	if x.upload != nil {
		x.upload.overtaken()
	}
	if err := x.accepted(resp); err != nil {
		return err
	}
	if err := x.proxy.guards.redirect(resp); err != nil {
		return err
	}
	x.proxy.guards.answer(resp.Header)
	x.event.Code, x.event.Upgraded = resp.StatusCode, resp.StatusCode == http.StatusSwitchingProtocols
	x.proxy.observer.began(resp.Request.Context(), x.event)
	switch {
	case x.whole:
		resp.Body = &download{ReadCloser: resp.Body, progress: x.progress}
	case x.event.Verb == "watch" && x.upgrade == "":
		resp.Body = &drainable{resp.Body, resp.Request}
	case x.event.Upgraded:
		if body, ok := resp.Body.(io.ReadWriteCloser); ok {
			resp.Body = &upgraded{ReadWriteCloser: body}
		}
	}
	return nil
}

// refuse sends an error to the client if the peer did not answer, or if judge returned an error for the answer.
func (x *exchange) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if x.progress != nil {
		err = x.progress.explain(err)
	}
	x.proxy.refuse(w, r, x.event, err)
}
