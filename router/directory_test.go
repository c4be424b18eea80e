// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"iter"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
)

var eu = region.Key{Provider: "loodse", Name: "eu-west-1"}

// server answers like a peer and records the requests.
type server struct {
	mu       sync.Mutex
	requests []*http.Request
	conn     *region.Conn
	redirect http.Handler // if set, it answers instead of the server
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	if s.redirect != nil {
		s.redirect.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if isWatch(r) {
		_, _ = fmt.Fprintln(w, `{"type":"ADDED","object":{"kind":"CouchDB","apiVersion":"eu-west-1.loodse/v1","metadata":{"name":"a","resourceVersion":"7"}}}`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	_, _ = fmt.Fprint(w, `{"kind":"CouchDBList","apiVersion":"eu-west-1.loodse/v1","metadata":{"resourceVersion":"5"},"items":[]}`)
}

func (s *server) last(t *testing.T) *http.Request {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(t, s.requests)
	return s.requests[len(s.requests)-1]
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// newServer returns a peer whose Conn has the token "library" as the library's own credential.
func newServer(t *testing.T, name region.PeerName) *server {
	t.Helper()
	return newServerWith(t, name, "library")
}

func newServerWith(t *testing.T, name region.PeerName, token string) *server {
	t.Helper()
	s := &server{}
	listening := httptest.NewServer(s)
	t.Cleanup(func() {
		listening.CloseClientConnections()
		listening.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	creds, err := region.FromConfig(&rest.Config{Host: listening.URL, BearerToken: token})
	require.NoError(t, err)
	s.conn, err = region.NewConn(region.Peer{Name: name, Credentials: creds}, region.ConnOptions{})
	require.NoError(t, err)
	return s
}

// directory is a region.Directory whose regions a test can move between peers.
type directory struct {
	mu       sync.Mutex
	snapshot *region.Snapshot
	next     chan struct{}
	conns    map[region.PeerName]*region.Conn
}

func newDirectory(t *testing.T, servers ...*server) *directory {
	t.Helper()
	d := &directory{conns: make(map[region.PeerName]*region.Conn), next: make(chan struct{})}
	for _, s := range servers {
		d.conns[s.conn.Peer()] = s.conn
	}
	d.serve(t, nil)
	return d
}

// serve publishes a Snapshot of all peers of d, in which each region belongs to the peer that regions names for it.
func (d *directory) serve(t *testing.T, regions map[region.Key]region.PeerName) {
	t.Helper()
	var peers []region.Peer
	for name := range d.conns {
		p := region.Peer{Name: name}
		for k, owner := range regions {
			if owner == name {
				p.Regions = append(p.Regions, k)
			}
		}
		peers = append(peers, p)
	}
	s, err := region.NewSnapshot(peers...)
	require.NoError(t, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.snapshot = s
	close(d.next)
	d.next = make(chan struct{})
}

func (d *directory) present() (*region.Snapshot, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.snapshot, d.next
}

func (d *directory) Snapshot() *region.Snapshot {
	s, _ := d.present()
	return s
}

func (d *directory) Watch(ctx context.Context) iter.Seq[*region.Snapshot] {
	return func(yield func(*region.Snapshot) bool) {
		for ctx.Err() == nil {
			s, next := d.present()
			if !yield(s) {
				return
			}
			select {
			case <-next:
			case <-ctx.Done():
			}
		}
	}
}

func (d *directory) Conn(name region.PeerName) (*region.Conn, error) {
	if c := d.conns[name]; c != nil {
		return c, nil
	}
	return nil, region.ErrUnknownPeer
}

// clientCertificate returns a self-signed certificate and its key, in PEM.
func clientCertificate(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs})
}

// newTLSServer returns a peer that requests a client certificate. The library's credentials for this peer
// are a token and a certificate.
func newTLSServer(t *testing.T, name region.PeerName) *server {
	t.Helper()
	s := &server{}
	listening := httptest.NewUnstartedServer(s)
	listening.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13}
	listening.StartTLS()
	certificate, key := clientCertificate(t)
	creds, err := region.FromConfig(&rest.Config{Host: listening.URL, BearerToken: "library", TLSClientConfig: rest.TLSClientConfig{
		CAData:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: listening.Certificate().Raw}),
		CertData: certificate, KeyData: key,
	}})
	require.NoError(t, err)
	s.conn, err = region.NewConn(region.Peer{Name: name, Credentials: creds}, region.ConnOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		s.conn.Close()
		listening.CloseClientConnections()
		listening.Close()
	})
	return s
}
