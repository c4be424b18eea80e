// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
)

// base is the path of a peer's API. Other paths of the server are reachable with the same credentials, but no
// request may reach them.
const base = "/tenant"

// asked is a request in the form in which a peer received it.
type asked struct {
	method, uri, path, host string
	header, trailer         http.Header
	certificate             bool
}

// peer is an API server with TLS and HTTP/2. The proxy's credentials for it are a token and a client certificate.
// The last segment of a request's path selects the answer.
type peer struct {
	server *httptest.Server
	conn   *region.Conn

	mu       sync.Mutex
	requests []asked
	underWay int
	most     int           // highest number of concurrent requests
	left     chan struct{} // receives a value when a hanging request or a stream has ended, and for each upload
	release  chan struct{} // closed to answer the hanging requests
}

func newPeer(t testing.TB, name region.PeerName, regions ...region.Key) *peer {
	t.Helper()
	p := &peer{left: make(chan struct{}, 1000), release: make(chan struct{})}
	p.server = httptest.NewUnstartedServer(p)
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.EnableHTTP2 = true
	p.server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	p.server.StartTLS()
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	creds, err := region.FromConfig(p.config(t, "library-at-"+string(name)))
	require.NoError(t, err)
	p.conn, err = region.NewConn(region.Peer{Name: name, Regions: regions, Credentials: creds}, region.ConnOptions{})
	require.NoError(t, err)
	t.Cleanup(p.conn.Close)
	return p
}

func (p *peer) config(t testing.TB, token string) *rest.Config {
	t.Helper()
	pair := p.server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	return &rest.Config{
		Host: p.server.URL + base, BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: certificate, CertData: certificate, KeyData: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		},
	}
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.underWay++
	p.most = max(p.most, p.underWay)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.underWay--
	}()
	last := path.Base(r.URL.Path)
	if last == "upload" {
		_, _ = bufio.NewReader(r.Body).ReadString('\n')
		p.left <- struct{}{}
	}
	_, _ = io.Copy(io.Discard, r.Body)
	p.note(r)
	switch last {
	case "exec":
		p.upgrade(w, r)
	case "redirect":
		http.Redirect(w, r, "https://evil.example.com/", http.StatusTemporaryRedirect)
	case "refused":
		http.Error(w, "no upgrade here", http.StatusForbidden)
	case "unauthorized":
		p.refuse(w, http.StatusUnauthorized, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`)
	case "unimpersonated":
		p.refuse(w, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"users \"alice\" is forbidden: User \"library-at-peer-a\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope","reason":"Forbidden","details":{"name":"alice","kind":"users"},"code":403}`)
	case "forbidden":
		p.refuse(w, http.StatusForbidden, forbiddenToAlice)
	case "browser":
		for _, name := range []string{"Set-Cookie", "Alt-Svc", "Access-Control-Allow-Origin", "Strict-Transport-Security", "Refresh", "Clear-Site-Data"} {
			w.Header().Set(name, "peer")
		}
	case "hints":
		w.Header().Set("Set-Cookie", "peer")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Set-Cookie")
	case "hang":
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-p.release:
		}
		p.left <- struct{}{}
	case "cut":
		_, _ = io.WriteString(w, "half of it")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "huge":
		_, _ = io.Copy(w, io.LimitReader(endless{}, 64<<20))
	default:
		if r.Method == http.MethodTrace {
			_ = r.Header.Write(w)
			return
		}
		_, _ = io.WriteString(w, "ok")
	}
}

// forbiddenToAlice is the answer of a peer that denies alice a list.
const forbiddenToAlice = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods is forbidden: User \"alice\" cannot list resource \"pods\" in API group \"\" at the cluster scope","reason":"Forbidden","details":{"kind":"pods"},"code":403}`

func (p *peer) refuse(w http.ResponseWriter, code int, status string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, status)
}

// upgrade switches the connection to the requested protocol and then echoes its bytes.
func (p *peer) upgrade(w http.ResponseWriter, r *http.Request) {
	protocol := upgradeOf(r.Header)
	if protocol == "" || r.ProtoMajor != 1 {
		http.Error(w, "want an upgrade", http.StatusBadRequest)
		return
	}
	conn, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", protocol)
	_ = both.Flush()
	_, _ = io.Copy(conn, both)
	p.left <- struct{}{}
}

func (p *peer) note(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, asked{
		method: r.Method, uri: r.RequestURI, path: path.Clean(r.URL.Path), host: r.Host, header: r.Header.Clone(), trailer: r.Trailer.Clone(),
		certificate: len(r.TLS.PeerCertificates) > 0,
	})
}

func (p *peer) received() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// outside returns an error if a request reached a path outside base.
func (p *peer) outside() error {
	for _, a := range p.received() {
		if !strings.HasPrefix(a.path, base+"/") {
			return fmt.Errorf("the peer is asked for %s", a.path)
		}
	}
	return nil
}

// await waits until n requests are under way.
func (p *peer) await(ctx context.Context, n int) error {
	return eventually(ctx, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.underWay != n {
			return fmt.Errorf("%d requests are under way, want %d", p.underWay, n)
		}
		return nil
	})
}
