// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"net/http/httputil"
)

// exchange is one request and its answer.
type exchange struct {
	proxy     *Proxy
	target    target
	upgrade   string // the protocol, if the client asks for one
	transport http.RoundTripper
	accepted  func(*http.Response) error // why the peer's answer is none to the caller
	event     *Event
	progress  *progress // nil: it may take its time
	whole     bool      // progress is for all of the exchange, not only its beginning
	upload    *upload   // nil: there is no body, or it is not watched
}

// watched is run for an exchange in which both sides must go on: to the end, or until the peer has begun to answer.
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

// rewrite makes the peer's request of the client's. Who it is made as is put in later, by the transport, where nothing that
// the client sent can take it out again.
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
		// Go's transport would ask for gzip by itself, and unpack here what nobody wanted packed.
		out.Header.Set("Accept-Encoding", "identity")
	}
}

// judge says whether the peer's answer may be handed on, and takes from it what is not the peer's to say.
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
	if x.whole {
		resp.Body = &download{ReadCloser: resp.Body, progress: x.progress}
	}
	return nil
}

// refuse answers for a peer that does not.
func (x *exchange) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if x.progress != nil {
		err = x.progress.explain(err)
	}
	x.proxy.refuse(w, r, x.event, err)
}
