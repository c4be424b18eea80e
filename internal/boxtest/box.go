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

// Box is a proxy before one API server. It sends requests with the credentials for that API server.
// It is safe for concurrent use.
type Box struct {
	upstream   http.RoundTripper
	base       *url.URL
	server     *http.Server
	kubeconfig []byte
	running    sync.WaitGroup // the server and delayed requests

	mu       sync.Mutex
	armed    *trap
	requests []*Request
	late     []func() // each sends a request that was answered but not yet forwarded
}

// Request is one request that arrived at the box.
type Request struct {
	Method string
	Path   string
	Query  url.Values
	Body   []byte
	Fault  string // name of the fault that it met
	Passed int    // how often it was forwarded
	Status int    // status code of the API server
}

// trap is a fault that waits for a matching request.
type trap struct {
	match func(Request) bool
	skip  int
	fault Fault
}

// New makes a box before the API server that a kubeconfig names. Call Close to stop it.
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
	// The server speaks HTTP/2 in clear text: TLS ends in conn, which reads and changes the frames.
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

// Kubeconfig returns a kubeconfig for clients that connect through the box.
func (b *Box) Kubeconfig() []byte { return b.kubeconfig }

// Close stops the box. It waits until the requests that TimeoutThen delays are forwarded. It drops
// the requests that only Release would forward.
func (b *Box) Close() {
	_ = b.server.Close()
	b.running.Wait()
	if t, ok := b.upstream.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Arm sets the fault that one matching request meets, after skip matching requests have passed. It
// replaces the previous fault and clears Requests.
func (b *Box) Arm(match func(Request) bool, skip int, fault Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed, b.requests = &trap{match, skip, fault}, nil
}

// Disarm removes the fault and clears Requests.
func (b *Box) Disarm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed, b.requests = nil, nil
}

// Requests returns the requests that arrived since the last call of Arm or Disarm.
func (b *Box) Requests() []Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Request, 0, len(b.requests))
	for _, r := range b.requests {
		all = append(all, *r)
	}
	return all
}

// Release forwards the requests that TimeoutLate has answered with 504 and holds back. It returns
// when the API server has responded to all of them.
func (b *Box) Release() {
	b.mu.Lock()
	late := b.late
	b.late = nil
	b.mu.Unlock()
	for _, pass := range late {
		pass()
	}
}

// serve handles one request from arrival to answer.
func (b *Box) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	x := &exchange{box: b, w: w, r: r, body: body, seen: &Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Body: body}}
	x.conn, _ = r.Context().Value(connKey{}).(*conn)
	fault := b.arrived(x.seen)
	if x.conn != nil && !x.conn.enter(fault != nil && fault.alone) {
		x.conn.hold(r.Context()) // the connection is closing
		panic(http.ErrAbortHandler)
	}
	if fault != nil {
		fault.do(x)
		return
	}
	x.answer(x.pass())
}

// arrived records a request, and returns the armed fault if the request meets it, else nil.
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

// exchange is one request on its way through the box.
type exchange struct {
	box  *Box
	w    http.ResponseWriter
	r    *http.Request
	conn *conn
	body []byte
	seen *Request
}

// reply is the API server's answer.
type reply struct {
	status int
	header http.Header
	body   []byte
	err    error
}

// pass sends the request to the API server and returns its answer. It ignores a cancellation by the
// client.
func (x *exchange) pass() reply {
	out := x.r.Clone(context.WithoutCancel(x.r.Context()))
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = x.box.base.Scheme, x.box.base.Host, "", ""
	out.Header.Del("Authorization") // the box uses its own credentials
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

// answer sends the API server's answer to the client.
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

// hopByHop lists headers that belong to one connection, and Content-Length, which the box sets
// itself.
var hopByHop = []string{"Connection", "Transfer-Encoding", "Keep-Alive", "Upgrade", "Content-Length"}
