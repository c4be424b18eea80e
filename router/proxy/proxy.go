// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// Authenticator returns the identity of a request's caller, by any proof that the program requires. On an error the
// proxy answers 401 without the error's text, or 503 if the error wraps region.ErrUnavailable: the proof could not be
// checked now. The proxy calls it concurrently, at most once for each request. Before that, the proxy refuses requests of a forbidden form, and requests above Limits.Authentications; it
// checks all other limits later. An Authenticator must not read the request's body.
type Authenticator func(*http.Request) (router.Identity, error)

// Options adjust a Proxy. The zero value works.
type Options struct {
	// Peers serves /peers/NAME/... to operators. Make it with router.New from a directory of [Peers]. Nil: the
	// proxy has no such path.
	Peers *router.Router
	// Operator reports whether the caller of a request is an operator. It is called once the caller is authenticated,
	// and is required with Peers.
	Operator func(*http.Request, router.Identity) bool

	// Limits bound the use of the proxy by each caller and region, so that no caller or region slows the others.
	Limits Limits

	// Flow returns the key under which Limits count an authenticated request. Nil: router.Identity.Flow, which is
	// the name of an impersonated user, or a token's fingerprint. A program that passes tokens on should return the
	// token's user.
	Flow func(*http.Request, router.Identity) string

	// Origin reports whether pages of another origin, such as https://console.example.com, may make a browser write
	// or open streams here. Nil: no other origin may.
	Origin func(origin string) bool

	Observer *Observer // may be nil

	// Logger receives log lines. Zero: the logger of the request's context (logr.NewContext), else slog.Default. To log
	// nothing, use logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Proxy is an http.Handler. It is safe for concurrent use and starts no goroutines by itself. It logs each request
// at level 1.
type Proxy struct {
	authenticate   Authenticator
	regions, peers *clients
	operator       func(*http.Request, router.Identity) bool
	flow           func(*http.Request, router.Identity) string
	observer       *Observer
	logger         logr.Logger
	buffers        *buffers
	guards         guards

	limits                             Limits
	requests, streams, authentications *gate
	silence                            silence
}

// New returns a Proxy for the regions of routes. It does no I/O.
func New(routes *router.Router, authenticate Authenticator, opts Options) (*Proxy, error) {
	switch {
	case routes == nil:
		return nil, errors.New("proxy: the router is nil; make one with router.New")
	case authenticate == nil:
		return nil, errors.New("proxy: the authenticator is nil; give a func that identifies each caller")
	case opts.Peers != nil && opts.Operator == nil:
		return nil, errors.New("proxy: Options.Peers is set and Options.Operator is not; say who may use /peers")
	}
	if err := opts.Limits.complete(); err != nil {
		return nil, err
	}
	if opts.Flow == nil {
		opts.Flow = func(_ *http.Request, id router.Identity) string { return id.Flow() }
	}
	p := &Proxy{
		authenticate: authenticate, regions: newClients(routes), operator: opts.Operator, flow: opts.Flow, limits: opts.Limits,
		observer: opts.Observer, logger: opts.Logger, buffers: &buffers{}, guards: intact(opts.Origin),
	}
	p.requests, p.streams, p.authentications = p.limits.gates()
	if opts.Peers != nil {
		p.peers = newClients(opts.Peers)
	}
	return p, nil
}

// ServeHTTP sends r to its region, as its caller, and blocks until the answer, watch or stream has ended. If a peer
// cuts its answer short, it panics with http.ErrAbortHandler, so that net/http cuts the client's answer short too.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.run(w, r, p.serve) }

// run calls serve, answers the request itself if serve returns an error, and logs and reports the request.
func (p *Proxy) run(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter, *http.Request, *Event) error) {
	e := newEvent(r)
	began := time.Now()
	defer func() {
		e.Elapsed = time.Since(began)
		p.observer.served(r.Context(), *e)
		p.log(r).V(1).Info("request", "audit", e.AuditID, "method", e.Method,
			"target", p.guards.loggable(r), "code", e.Code, "upgraded", e.Upgraded, "elapsed", e.Elapsed)
	}()
	if err := serve(w, r, e); err != nil {
		p.refuse(w, r, e, err)
	}
}

func (p *Proxy) log(r *http.Request) logr.Logger {
	if !p.logger.IsZero() {
		return p.logger
	}
	return logging.From(r.Context())
}

// serve answers a request. It returns an error only if it has not begun to answer.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, e *Event) error {
	id, err := p.caller(r)
	if err != nil {
		return err
	}
	t, err := p.target(r, id)
	if err != nil {
		return err
	}
	e.Region = t.key
	if p.silence.refuses(t.key, t.clients.routes.Health(t.key), r, t.path) {
		return refusal{http.StatusServiceUnavailable, "the region is known and does not answer at present; nothing was sent there"}
	}
	upgrade := upgradeOf(r.Header)
	g := p.requests
	if upgrade != "" || e.longRunning {
		g = p.streams
	}
	f := flow{t.key, p.flow(r, id)}
	if err := g.enter(r.Context(), f); err != nil {
		return err
	}
	defer g.leave(f)
	client, err := t.clients.get(r.Context(), t.key, id)
	if err != nil {
		return err
	}
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
	x := &exchange{proxy: p, target: t, upgrade: upgrade, transport: transport, accepted: accepted, event: e}
	switch {
	case g == p.requests:
		x.watched(w, r, true)
	case upgrade == "" && e.Verb == "watch":
		x.watched(w, r, false)
	default:
		x.run(p.guards.hints(w), r)
	}
	return nil
}

// caller applies the guards to r and returns the authenticated identity of its caller. The error is a refusal, or the
// cause of the end of r's context.
func (p *Proxy) caller(r *http.Request) (router.Identity, error) {
	if err := p.guards.admit(r); err != nil {
		return router.Identity{}, refusal{http.StatusBadRequest, err.Error()}
	}
	source := sourceOf(r)
	if err := p.authentications.enter(r.Context(), source); err != nil {
		return router.Identity{}, err
	}
	id, err := func() (router.Identity, error) {
		defer p.authentications.leave(source) // also if authenticate panics
		return p.authenticate(r)
	}()
	if id, err = p.guards.authenticated(id, err); err != nil {
		return router.Identity{}, err
	}
	return id, p.guards.impersonation(r)
}

// key is the region of a request, in events and logs.
type key = region.Key
