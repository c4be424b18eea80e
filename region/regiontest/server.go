// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options configure a Server. The zero value works.
type Options struct {
	// Name appears in the addresses of the server and in errors. Zero: "memory".
	Name string

	// CRDs are served from the start. NewServer panics if the server would reject one.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	// Definitions are further CRDs, already compiled. NewServer panics if the server would reject one.
	Definitions *Definitions

	// Tokens maps bearer tokens to users. If it is not nil, the server rejects other tokens with 401, and a request
	// without a token has the user system:anonymous. If it is nil, a request with any token, or without one, has the
	// user system:admin in the group system:masters. A client certificate takes precedence over a token.
	Tokens map[string]User

	// The server calls Authorize before it executes a request. An error is the reason in a 403 of the usual form. If
	// the request impersonates a user, the server calls Authorize several times: with the verb "impersonate" for the
	// user and each UID, group and extra value, as the impersonator, and last for the request itself. Nil allows
	// everything.
	Authorize func(Request) error

	// KeepNamespaceContent leaves a deleted namespace Terminating with all its content, as an API server without a
	// namespace controller does. By default the server deletes the content, and removes the namespace when its last
	// object is gone.
	KeepNamespaceContent bool

	// History is the number of latest requests that the server records. Zero: 10000.
	History int

	// Events limits the history of changes that the server keeps for watches. For each resource it keeps at least this
	// number of latest changes, and at most twice as many; it compacts older ones. Zero: it keeps all changes.
	Events int
}

// Server is an API server in memory: an http.Handler, so that clients, informers, impersonation and watches run their
// real code against it. It stores objects and runs no controllers. Safe for concurrent use.
type Server struct {
	opts      Options
	store     *store
	catalogue *catalogue
	history   history
	faults    faults
	late      sync.WaitGroup // writes of ApplyLate, and listeners
	cut       atomic.Bool
	door      *door
	closed    chan struct{}
	closeOnce sync.Once
}

func (s *Server) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// NewServer returns a server with the namespaces default, kube-system, kube-public and kube-node-lease. It starts no
// goroutine. It panics if a CRD of opts is invalid, since that is a mistake of the calling program.
func NewServer(opts Options) *Server {
	if opts.Name == "" {
		opts.Name = "memory"
	}
	if opts.History <= 0 {
		opts.History = 10000
	}
	s := &Server{opts: opts, store: newStore(opts.Events), catalogue: &catalogue{resources: map[schema.GroupVersionResource]*resource{}}, closed: make(chan struct{})}
	s.history.limit = opts.History
	s.catalogue.add(builtin()...)
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		s.mustCreate("namespaces", "v1", object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}})
	}
	for _, crd := range opts.CRDs {
		if err := s.AddCRD(crd); err != nil {
			panic(fmt.Sprintf("regiontest: NewServer: CRD %s: %v", crd.Name, err))
		}
	}
	if opts.Definitions != nil {
		if err := s.AddDefinitions(opts.Definitions); err != nil {
			panic(err.Error())
		}
	}
	s.door = &door{server: s}
	return s
}

// Close ends all watches, drops the pending writes of ApplyLate and closes the listeners. It waits for the writes and
// listeners, not for the watches. Later requests fail as if the server were unreachable. Close is idempotent.
func (s *Server) Close() {
	s.closeOnce.Do(func() { close(s.closed) })
	s.late.Wait()
}

// Partition makes the server unreachable, or reachable again. While it is unreachable, requests fail with a connection
// error, and running watches end. If the server has already accepted a request, it executes the request, and the
// response is lost: the connection is reset. The transport of Config refuses (ECONNREFUSED) a request that the server
// did not accept; over TLS the connection is reset in this case, too. Partition is idempotent.
func (s *Server) Partition(cut bool) {
	s.cut.Store(cut)
	if cut {
		s.faults.cutWatches()
	}
}

// Compact forgets the history of all resources: a watch or a paged list that continues from an earlier resourceVersion
// gets 410 Gone.
func (s *Server) Compact() { s.store.compact() }

// Requests returns a copy of the recorded requests, oldest first.
func (s *Server) Requests() []Request { return s.history.list() }

// Reset forgets the history of requests and all faults. Objects stay.
func (s *Server) Reset() {
	s.history.reset()
	s.faults.reset()
}

// ServeHTTP serves one request. It panics with http.ErrAbortHandler to drop the connection, as net/http expects.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := s.receive(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	s.answer(w, c)
}

// receive records r and accepts it. It returns an error if the server is partitioned or closed: then the request has no
// effect.
func (s *Server) receive(r *http.Request) (*call, error) {
	c := parse(r)
	c.unauthenticated = s.authenticate(c)
	c.id = s.history.add(c.Request)
	if s.cut.Load() || s.isClosed() {
		s.history.update(c.id, func(r *Request) { r.Err = errPartitioned })
		return nil, errPartitioned
	}
	return c, nil
}

// answer executes an accepted request, and applies the fault that matches it. If the server is partitioned by the end
// of the execution, the response is lost.
func (s *Server) answer(w http.ResponseWriter, c *call) {
	rw := &responseWriter{ResponseWriter: w}
	defer func() {
		s.history.update(c.id, func(r *Request) { r.Code = rw.code })
	}()
	if fault := s.faults.match(c); fault != nil {
		if done := s.play(fault, rw, c); done {
			return
		}
	}
	if c.unauthenticated != nil {
		s.fail(rw, c, c.unauthenticated)
	} else {
		s.handle(rw, c)
	}
	if s.cut.Load() {
		rw.code = 0
		s.abort(c, errPartitioned)
	}
}

// abort ends c without a response.
func (s *Server) abort(c *call, reason error) {
	s.history.update(c.id, func(r *Request) { r.Err = reason })
	panic(http.ErrAbortHandler)
}

// handle serves c as an API server would.
func (s *Server) handle(w http.ResponseWriter, c *call) {
	if err := s.authorize(c); err != nil {
		s.fail(w, c, err)
		return
	}
	if c.Resource == "" {
		s.serveDiscovery(w, c)
		return
	}
	gvr := schema.GroupVersionResource{Group: c.Group, Version: c.Version, Resource: c.Resource}
	if s.serveReview(w, c, gvr) {
		return
	}
	c.resource = s.catalogue.find(gvr)
	if c.resource == nil || c.misplaced() {
		notFound(w)
		return
	}
	if c.resource.plural == "namespaces" && c.Group == "" {
		c.Namespace = ""
	}
	if !c.servesSubresource() {
		if c.resource.custom() {
			s.fail(w, c, apierrors.NewNotFound(c.resource.gr(), c.Name))
		} else {
			notFound(w)
		}
		return
	}
	if err := s.dispatch(w, c); err != nil {
		s.fail(w, c, err)
	}
}

// misplaced reports whether the path names a namespaced object without its namespace, or a cluster-scoped object with a
// namespace.
func (c *call) misplaced() bool {
	if c.resource.namespaced {
		return c.Namespace == "" && c.Name != ""
	}
	return c.Namespace != "" && c.resource.plural != "namespaces"
}

func (c *call) servesSubresource() bool {
	switch c.Subresource {
	case "":
		return true
	case "status":
		return c.resource.status && (c.Verb == "get" || c.Verb == "update" || c.Verb == "patch")
	case "finalize":
		return c.resource.plural == "namespaces" && c.Group == "" && c.Verb == "update"
	default:
		return false
	}
}

func (s *Server) dispatch(w http.ResponseWriter, c *call) error {
	switch c.Verb {
	case "get":
		return s.serveGet(w, c)
	case "list":
		return s.serveList(w, c)
	case "watch":
		return s.serveWatch(w, c)
	case "create":
		if c.resource.namespaced && c.Namespace == "" {
			return apierrors.NewMethodNotSupported(c.resource.gr(), "create")
		}
		return s.serveCreate(w, c)
	case "update":
		if c.Name == "" {
			return apierrors.NewBadRequest("name must be provided")
		}
		return s.serveUpdate(w, c)
	case "patch":
		if c.Name == "" {
			return apierrors.NewBadRequest("name must be provided")
		}
		return s.servePatch(w, c)
	case "delete":
		return s.serveDelete(w, c)
	case "deletecollection":
		return s.serveDeleteCollection(w, c)
	default:
		return apierrors.NewMethodNotSupported(c.resource.gr(), strings.ToLower(c.Method))
	}
}

// responseWriter records the status code.
type responseWriter struct {
	http.ResponseWriter
	code int
}

func (w *responseWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Flush flushes the response.
func (w *responseWriter) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}
