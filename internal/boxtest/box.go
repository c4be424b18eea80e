// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package boxtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Box passes requests on to one API server, with the credentials for it. It is
// safe for concurrent use.
type Box struct {
	upstream   http.RoundTripper
	base       *url.URL
	server     *http.Server
	kubeconfig []byte
	running    sync.WaitGroup // the server and what is passed on late

	mu       sync.Mutex
	armed    *trap
	requests []*Request
	late     []func() // what was answered and is yet to be passed on
}

// Request is one request that arrived at the box.
type Request struct {
	Method string
	Path   string
	Query  url.Values
	Body   []byte
	Fault  string // what it met
	Passed int    // how often it was passed on
	Status int    // how the API server answered
}

// trap is a fault that waits for a request.
type trap struct {
	match func(Request) bool
	skip  int
	fault Fault
}

// New makes a box before the API server of a kubeconfig. Close ends it.
func New(kubeconfig []byte) (*Box, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	b := &Box{}
	if b.base, _, err = rest.DefaultServerUrlFor(config); err != nil {
		return nil, err
	}
	if b.upstream, err = rest.TransportFor(config); err != nil {
		return nil, err
	}
	certificate, authority, err := certify()
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if b.kubeconfig, err = kubeconfigFor(listener.Addr().String(), authority); err != nil {
		_ = listener.Close()
		return nil, err
	}
	// The server speaks HTTP/2 without knowing of TLS, so that the frames pass
	// through this package, which adds and changes some.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	b.server = &http.Server{
		Handler: http.HandlerFunc(b.serve), Protocols: &protocols, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:    log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	door := &listen{Listener: listener, config: &tls.Config{
		Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12,
	}}
	b.running.Go(func() { _ = b.server.Serve(door) }) // ends with http.ErrServerClosed
	return b, nil
}

// Kubeconfig is for clients that are to go through the box.
func (b *Box) Kubeconfig() []byte { return b.kubeconfig }

// Close ends the box and forgets what it still holds back.
func (b *Box) Close() {
	_ = b.server.Close()
	b.running.Wait()
	if t, ok := b.upstream.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Arm lets a fault befall the one request that matches after as many others did
// as skip says. It replaces what was armed, and forgets the requests so far.
func (b *Box) Arm(match func(Request) bool, skip int, fault Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed, b.requests = &trap{match, skip, fault}, nil
}

// Disarm takes away what is armed, and forgets the requests so far.
func (b *Box) Disarm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed, b.requests = nil, nil
}

// Requests are those that arrived since the last call of Arm or Disarm.
func (b *Box) Requests() []Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Request, 0, len(b.requests))
	for _, r := range b.requests {
		all = append(all, *r)
	}
	return all
}

// Release passes on what was answered before it was passed on. It returns when
// the API server has answered.
func (b *Box) Release() {
	b.mu.Lock()
	late := b.late
	b.late = nil
	b.mu.Unlock()
	for _, pass := range late {
		pass()
	}
}

// serve is the whole way of one request.
func (b *Box) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	x := &exchange{box: b, w: w, r: r, body: body, seen: &Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Body: body}}
	x.conn, _ = r.Context().Value(connKey{}).(*conn)
	fault := b.arrived(x.seen)
	if x.conn != nil && !x.conn.enter(fault != nil && fault.alone) {
		x.conn.await(r.Context()) // the connection is being given up
		panic(http.ErrAbortHandler)
	}
	if fault != nil {
		fault.do(x)
		return
	}
	x.answer(x.pass())
}

// arrived notes a request and springs the trap that it walks into.
func (b *Box) arrived(r *Request) *Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests = append(b.requests, r)
	if b.armed == nil || !b.armed.match(*r) {
		return nil
	}
	if b.armed.skip > 0 {
		b.armed.skip--
		return nil
	}
	fault := b.armed.fault
	b.armed = nil
	r.Fault = fault.name
	return &fault
}

// exchange is one request and what becomes of it.
type exchange struct {
	box  *Box
	w    http.ResponseWriter
	r    *http.Request
	conn *conn
	body []byte
	seen *Request
}

// reply is what the API server answered.
type reply struct {
	status int
	header http.Header
	body   []byte
	err    error
}

// pass gives the request to the API server and returns its answer. The one who
// sent it cannot take it back any more.
func (x *exchange) pass() reply {
	out := x.r.Clone(context.WithoutCancel(x.r.Context()))
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = x.box.base.Scheme, x.box.base.Host, "", ""
	out.Header.Del("Authorization") // the box has its own
	out.Body, out.ContentLength = http.NoBody, 0
	if len(x.body) > 0 {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(x.body)), int64(len(x.body))
	}
	response, err := x.box.upstream.RoundTrip(out)
	answer := reply{err: err}
	if err == nil {
		defer func() { _ = response.Body.Close() }()
		answer.status, answer.header = response.StatusCode, response.Header
		answer.body, answer.err = io.ReadAll(response.Body)
	}
	x.box.mu.Lock()
	defer x.box.mu.Unlock()
	x.seen.Passed++
	x.seen.Status = answer.status
	return answer
}

// answer hands the API server's answer on.
func (x *exchange) answer(a reply) {
	if a.err != nil {
		panic(http.ErrAbortHandler)
	}
	for name, values := range a.header {
		if !slices.Contains(hopByHop, name) {
			x.w.Header()[name] = values
		}
	}
	x.w.Header().Set("Content-Length", fmt.Sprint(len(a.body)))
	x.w.WriteHeader(a.status)
	_, _ = x.w.Write(a.body)
}

// hopByHop are headers of one connection, and the length, which the box knows.
var hopByHop = []string{"Connection", "Transfer-Encoding", "Keep-Alive", "Upgrade", "Content-Length"}
