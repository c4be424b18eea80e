// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// Authenticator says who makes a request, by whatever proof the program asks for. Its error is answered with 401, in words
// of the proxy. It is called for every request, concurrently, and must not read the body.
type Authenticator func(*http.Request) (router.Identity, error)

// Options adjust a Proxy. The zero value works.
type Options struct {
	// Peers, made by router.New of a directory of [Peers], serves /peers/NAME/... to operators. Nil: there is no such path.
	Peers *router.Router
	// Operator says whether whoever makes the request is an operator. It is called once the caller is authenticated, and is
	// required with Peers.
	Operator func(*http.Request, router.Identity) bool

	// Requests is how many requests may be under way that are neither watches nor followed logs nor upgraded; zero: 400.
	// More are answered with 429. What each region may take is the router's to say; see router.Budget.
	Requests int
	// Streams is how many watches, followed logs and upgraded streams may be open; zero: 4000. More are answered with 429.
	Streams int

	// Origin says whether pages of another origin, such as https://console.example.com, may make a browser write or open
	// streams here. Nil: none may.
	Origin func(origin string) bool

	Observer *Observer // may be nil
}

const (
	defaultRequests = 400
	defaultStreams  = 4000
)

// Proxy is an http.Handler. It is safe for concurrent use and starts nothing. It logs with the logger of the request's
// context (logr.NewContext), at level 1.
type Proxy struct {
	authenticate      Authenticator
	regions, peers    *clients
	operator          func(*http.Request, router.Identity) bool
	requests, streams slots
	observer          *Observer
	buffers           *buffers
	guards            guards
}

// New makes a Proxy to the regions of routes. It does no I/O.
func New(routes *router.Router, authenticate Authenticator, opts Options) (*Proxy, error) {
	switch {
	case routes == nil:
		return nil, errors.New("proxy: the router is nil; make one with router.New")
	case authenticate == nil:
		return nil, errors.New("proxy: the authenticator is nil; without one nobody could be told from anybody")
	case opts.Peers != nil && opts.Operator == nil:
		return nil, errors.New("proxy: Options.Peers is set and Options.Operator is not; say who may use /peers")
	case opts.Requests < 0 || opts.Streams < 0:
		return nil, errors.New("proxy: Options.Requests and Options.Streams are not negative; zero is the default")
	}
	if opts.Requests == 0 {
		opts.Requests = defaultRequests
	}
	if opts.Streams == 0 {
		opts.Streams = defaultStreams
	}
	p := &Proxy{
		authenticate: authenticate, regions: newClients(routes), operator: opts.Operator,
		requests: newSlots(opts.Requests), streams: newSlots(opts.Streams),
		observer: opts.Observer, buffers: &buffers{}, guards: intact(opts.Origin),
	}
	if opts.Peers != nil {
		p.peers = newClients(opts.Peers)
	}
	return p, nil
}

// ServeHTTP sends r to its region, as its caller, and blocks until the answer, watch or stream has ended. If a peer cuts
// its answer short, it panics with http.ErrAbortHandler, by which net/http cuts the client's short too.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := &Event{Method: r.Method, AuditID: auditID(r.Header)}
	began := time.Now()
	defer func() {
		e.Elapsed = time.Since(began)
		p.observer.served(r.Context(), *e)
		logr.FromContextOrDiscard(r.Context()).V(1).Info("request", "audit", e.AuditID, "method", e.Method,
			"target", p.guards.loggable(r), "code", e.Code, "upgraded", e.Upgraded, "elapsed", e.Elapsed)
	}()
	if err := p.serve(w, r, e); err != nil {
		p.refuse(w, r, e, err)
	}
}

// serve returns an error as long as nothing was answered.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, e *Event) error {
	if err := p.guards.admit(r); err != nil {
		return refusal{http.StatusBadRequest, err.Error()}
	}
	id, err := p.authenticate(r)
	if id, err = p.guards.authenticated(id, err); err != nil {
		return err
	}
	t, err := p.target(r, id)
	if err != nil {
		return err
	}
	e.Region = t.key
	client, err := t.clients.get(r.Context(), t.key, id)
	if err != nil {
		return err
	}
	upgrade := upgradeOf(r.Header)
	pool := p.requests
	if upgrade != "" || t.info(r).IsLongRunning() {
		pool = p.streams
	}
	if !pool.take() {
		return refusal{http.StatusTooManyRequests, "too many requests are under way here"}
	}
	defer pool.give()
	transport, accepted := client.Transport(), func(*http.Response) error { return nil }
	if upgrade != "" {
		end, err := client.BeginStream(r.Context())
		if err != nil {
			return err
		}
		defer end()
		if transport, err = p.stream(client); err != nil {
			return err
		}
		accepted = client.Accepted
	}
	exchange := &httputil.ReverseProxy{
		Rewrite:    func(out *httputil.ProxyRequest) { p.rewrite(out, t, upgrade, e) },
		Transport:  transport,
		BufferPool: p.buffers,
		ErrorLog:   quiet(r, e),
		ModifyResponse: func(resp *http.Response) error {
			if err := accepted(resp); err != nil {
				return err
			}
			return p.judge(resp, e)
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { p.refuse(w, r, e, err) },
	}
	exchange.ServeHTTP(p.guards.hints(w), r)
	return nil
}

// rewrite makes the peer's request of the client's. Who it is made as is put in later, by the transport, where nothing that
// the client sent can take it out again.
func (p *Proxy) rewrite(r *httputil.ProxyRequest, t target, upgrade string, e *Event) {
	out := r.Out
	t.locate(out.URL)
	out.Host = ""
	p.guards.identity(out.Header)
	p.guards.origins(out.Header)
	p.guards.trailers(out)
	r.SetXForwarded()
	out.Header.Set("Audit-Id", e.AuditID)
	if upgrade != "" {
		out.Header.Set("Connection", "Upgrade")
		out.Header.Set("Upgrade", upgrade)
	}
	if out.Header.Get("Accept-Encoding") == "" {
		// Go's transport would ask for gzip by itself, and unpack here what nobody wanted packed.
		out.Header.Set("Accept-Encoding", "identity")
	}
}

// judge says whether the peer's answer may be handed on, and takes from it what is not the peer's to say.
func (p *Proxy) judge(resp *http.Response, e *Event) error {
	if err := p.guards.redirect(resp); err != nil {
		return err
	}
	p.guards.answer(resp.Header)
	e.Code, e.Upgraded = resp.StatusCode, resp.StatusCode == http.StatusSwitchingProtocols
	return nil
}

// key names what a request is for, in events and logs.
type key = region.Key
