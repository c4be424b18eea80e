// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// cluster is a minimal API server for connections: authentication, health, identity, and one collection.
type cluster struct {
	uid  string
	door *inProcess

	mu      sync.Mutex
	tokens  map[string]bool
	blind   map[string]bool // tokens that may not read kube-system
	down    bool
	hanging bool     // accepts requests and never responds
	count   int      // number of requests that reached the cluster
	users   []string // the user of each request below /apis
	writes  int
	answer  http.HandlerFunc // for paths below /apis; nil: 200
}

func newCluster(uid string, tokens ...string) *cluster {
	c := &cluster{uid: uid, tokens: make(map[string]bool), blind: make(map[string]bool)}
	c.door = &inProcess{c}
	for _, t := range tokens {
		c.tokens[t] = true
	}
	return c
}

func (c *cluster) setDown(down bool)            { c.mu.Lock(); defer c.mu.Unlock(); c.down = down }
func (c *cluster) setToken(t string, good bool) { c.mu.Lock(); defer c.mu.Unlock(); c.tokens[t] = good }
func (c *cluster) setBlind(t string, blind bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blind[t] = blind
}
func (c *cluster) isBlind(user string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blind[strings.TrimPrefix(user, "token:")]
}
func (c *cluster) setHanging(h bool) { c.mu.Lock(); defer c.mu.Unlock(); c.hanging = h }
func (c *cluster) received() int     { c.mu.Lock(); defer c.mu.Unlock(); return c.count }
func (c *cluster) usersSeen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.users...)
}

// user returns the user of a request. A client certificate takes precedence over a token, as on a real API server.
func (c *cluster) user(r *http.Request) string {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return "certificate:" + r.TLS.PeerCertificates[0].Subject.CommonName
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens[token] {
		return "token:" + token
	}
	return ""
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.count++
	down, hanging, answer := c.down, c.hanging, c.answer
	c.mu.Unlock()
	if hanging {
		<-r.Context().Done()
		return
	}
	user := c.user(r)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case user == "":
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`)
	case r.URL.Path == "/readyz":
		_, _ = io.WriteString(w, "ok")
	case r.URL.Path == "/api/v1/namespaces/kube-system" && c.isBlind(user):
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`)
	case r.URL.Path == "/api/v1/namespaces/kube-system":
		_, _ = fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, c.uid)
	case strings.HasPrefix(r.URL.Path, "/apis/"):
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		c.users = append(c.users, user)
		if r.Method != http.MethodGet {
			c.writes++
		}
		c.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		if len(body) == 0 {
			body = []byte(`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"w"}}`)
		}
		_, _ = w.Write(body)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// credentials returns Credentials that reach c within the process, so they work in a synctest bubble too.
func (c *cluster) credentials(t *testing.T, token string) Credentials {
	t.Helper()
	creds, err := FromConfig(&rest.Config{Host: "https://" + c.uid + ".test", BearerToken: token, Transport: c.door})
	require.NoError(t, err)
	return creds
}

// inProcess serves requests with a handler, including streams, without a socket.
type inProcess struct{ handler http.Handler }

func (t *inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	pr, pw := io.Pipe()
	w := &pipeWriter{header: make(http.Header), pw: pw, ready: make(chan struct{})}
	if req.Body == nil {
		req.Body = http.NoBody
	}
	go func() {
		t.handler.ServeHTTP(w, req)
		w.WriteHeader(http.StatusOK)
		// As over a socket, a client that gave up reads why it did so, never the orderly end of the answer.
		_ = pw.CloseWithError(context.Cause(req.Context()))
	}()
	stop := context.AfterFunc(req.Context(), func() { _ = pw.CloseWithError(context.Cause(req.Context())) })
	select {
	case <-w.ready:
		return &http.Response{StatusCode: w.status, Header: w.header, Body: pr, Request: req, ProtoMajor: 1, ProtoMinor: 1}, nil
	case <-req.Context().Done():
		stop()
		_ = pr.Close()
		return nil, req.Context().Err()
	}
}

type pipeWriter struct {
	header http.Header
	pw     *io.PipeWriter
	once   sync.Once
	ready  chan struct{}
	status int
}

func (w *pipeWriter) Header() http.Header { return w.header }
func (w *pipeWriter) Flush()              { w.WriteHeader(http.StatusOK) }

func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status = status
		close(w.ready)
	})
}

func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pw.Write(p)
}

// authority signs servers and clients of tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	a := &authority{}
	a.cert, a.key, a.pem, _ = a.sign(tb, &x509.Certificate{
		Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

func (a *authority) sign(tb testing.TB, template *x509.Certificate) (cert *x509.Certificate, key *ecdsa.PrivateKey, certPEM, keyPEM []byte) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(tb, err)
	cert, err = x509.ParseCertificate(der)
	require.NoError(tb, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(tb, err)
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// serve serves c with TLS on loopback and returns its address.
func (a *authority) serve(t *testing.T, c http.Handler) string {
	t.Helper()
	_, _, certPEM, keyPEM := a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	require.NoError(t, err)
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	server := httptest.NewUnstartedServer(c)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // connections that clients close during the handshake
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.VerifyClientCertIfGiven}
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// kubeconfig returns a valid kubeconfig, changed by edit.
func kubeconfig(tb testing.TB, server string, ca []byte, edit func(*clientcmdv1.Config)) []byte {
	tb.Helper()
	k := &clientcmdv1.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: "peer",
		Clusters:  []clientcmdv1.NamedCluster{{Name: "peer", Cluster: clientcmdv1.Cluster{Server: server, CertificateAuthorityData: ca}}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: "atoll", AuthInfo: clientcmdv1.AuthInfo{Token: "secret"}}},
		Contexts:  []clientcmdv1.NamedContext{{Name: "peer", Context: clientcmdv1.Context{Cluster: "peer", AuthInfo: "atoll"}}},
	}
	if edit != nil {
		edit(k)
	}
	data, err := yaml.Marshal(k)
	require.NoError(tb, err)
	return data
}

// credentialsFor parses a kubeconfig of server with token.
func credentialsFor(t *testing.T, server string, ca []byte, token string) Credentials {
	t.Helper()
	creds, err := ParseKubeconfig(kubeconfig(t, server, ca, func(k *clientcmdv1.Config) {
		k.AuthInfos[0].AuthInfo.Token = token
	}), Trust{})
	require.NoError(t, err)
	return creds
}
