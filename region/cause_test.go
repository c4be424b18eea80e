// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
)

// connTo returns a Conn that uses config unchanged.
func connTo(t *testing.T, config *rest.Config) *region.Conn {
	t.Helper()
	creds, err := region.FromConfig(config)
	require.NoError(t, err)
	conn, err := region.NewConn(region.Peer{Name: "eu", Credentials: creds}, region.ConnOptions{})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// get returns the error of one request by a client of conn.
func get(ctx context.Context, conn *region.Conn) error {
	_, err := conn.Dynamic().Resource(configMaps).Namespace("default").Get(ctx, "x", metav1.GetOptions{})
	return err
}

// CauseOf and Diagnose return the right cause and text for each way in which a server is unreachable. Most rows use
// real connections.
func TestCauseOfConnections(t *testing.T) {
	t.Parallel()
	short := func(t *testing.T) context.Context {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	for _, tc := range []struct {
		name string
		run  func(t *testing.T) error
		want region.Cause
		text string
	}{
		{"a closed port", func(t *testing.T) error {
			t.Helper()
			return get(t.Context(), connTo(t, &rest.Config{Host: "http://" + closedPort(t)}))
		}, region.CauseRefused, `^dial tcp 127\.0\.0\.1:\d+: connect: connection refused: check that the API server runs, and its address in the kubeconfig$`},
		{"a name that does not resolve", func(t *testing.T) error {
			t.Helper()
			return get(t.Context(), connTo(t, &rest.Config{Host: "http://eu.example.com", Dial: unresolved}))
		}, region.CauseDNS, `^DNS lookup failed: dial tcp: lookup eu\.example\.com: no such host: check the server's host name in the kubeconfig, and the resolver$`},
		{"a resolver that is silent", func(t *testing.T) error {
			t.Helper()
			resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			dialer := net.Dialer{Resolver: resolver}
			return get(short(t), connTo(t, &rest.Config{Host: "http://eu.example.com", Dial: dialer.DialContext}))
		}, region.CauseDNS, `^DNS lookup failed: `},
		{"a host that is away", func(t *testing.T) error {
			t.Helper()
			return get(short(t), connTo(t, &rest.Config{Host: "http://192.0.2.1", Dial: away}))
		}, region.CauseConnectTimeout, `^no connection in time: .*: check the network, and the server's address in the kubeconfig$`},
		{"a server that accepts and never shakes hands", func(t *testing.T) error {
			t.Helper()
			return get(short(t), connTo(t, &rest.Config{Host: "https://" + silent(t)}))
		}, region.CauseTimeout, `^no answer in time: context deadline exceeded: check whether the API server is frozen or overloaded$`},
		{"a server that never answers", func(t *testing.T) error {
			t.Helper()
			return get(short(t), connTo(t, &rest.Config{Host: "http://" + silent(t)}))
		}, region.CauseTimeout, `^no answer in time: `},
		{"a server that stops in the middle of an answer", func(t *testing.T) error {
			t.Helper()
			return get(short(t), connTo(t, &rest.Config{Host: plain(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, `{"kind":`)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			})}))
		}, region.CauseTimeout, `no answer in time: `},
		{"a server that hangs up", func(t *testing.T) error {
			t.Helper()
			return get(t.Context(), connTo(t, &rest.Config{Host: plain(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })}))
		}, region.CauseLost, `^connection lost: EOF: `},
		{"no TLS", func(t *testing.T) error {
			t.Helper()
			server := plain(t, func(http.ResponseWriter, *http.Request) {})
			return get(t.Context(), connTo(t, &rest.Config{Host: "https" + server[len("http"):]}))
		}, region.CauseTLS, `^TLS handshake failed: `},
		{"an unknown authority", func(t *testing.T) error {
			t.Helper()
			url, _ := secured(t, time.Now().Add(time.Hour), "127.0.0.1")
			_, other := secured(t, time.Now().Add(time.Hour), "127.0.0.1")
			return get(t.Context(), connTo(t, &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{CAData: other}}))
		}, region.CauseUnknownAuthority, `certificate signed by unknown authority.*: correct the certificate authority in the kubeconfig$`},
		{"an expired certificate", func(t *testing.T) error {
			t.Helper()
			url, ca := secured(t, time.Now().Add(-time.Hour), "127.0.0.1")
			return get(t.Context(), connTo(t, &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}))
		}, region.CauseExpired, `certificate has expired or is not yet valid`},
		{"a certificate of another host", func(t *testing.T) error {
			t.Helper()
			url, ca := secured(t, time.Now().Add(time.Hour), "192.0.2.7")
			return get(t.Context(), connTo(t, &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}))
		}, region.CauseOtherHost, `^certificate is of another host: `},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := tc.run(t)
			require.Error(t, err)
			require.Equal(t, tc.want, region.CauseOf(err), "%v", err)
			require.ErrorIs(t, err, region.ErrUnavailable)
			diagnosed := region.Diagnose(err)
			require.Regexp(t, tc.text, diagnosed.Error())
			require.ErrorIs(t, diagnosed, region.ErrUnavailable)
			require.Equal(t, tc.want, region.CauseOf(fmt.Errorf("later: %w", diagnosed)))
			require.Equal(t, diagnosed, region.Diagnose(diagnosed))
			require.NotEmpty(t, tc.want.Remedy())
		})
	}
}

// The cause of an error response follows from its status code, or from its message where the status code is ambiguous.
func TestCauseOfAnswers(t *testing.T) {
	t.Parallel()
	gr := schema.GroupResource{Group: "kubecarrier.io", Resource: "serviceclusters"}
	calling := func(cause string) error {
		return apierrors.NewInternalError(fmt.Errorf(`failed calling webhook "check.example.com": failed to call webhook: Post "https://127.0.0.1:1/": %s`, cause))
	}
	for _, tc := range []struct {
		err  error
		want region.Cause
	}{
		{nil, region.CauseUnknown},
		{errors.New("else"), region.CauseUnknown},
		{context.Canceled, region.CauseUnknown},
		{context.DeadlineExceeded, region.CauseUnknown}, // possibly of a caller that sent nothing
		{apierrors.NewNotFound(gr, "x"), region.CauseUnknown},
		{apierrors.NewConflict(gr, "x", errors.New("changed")), region.CauseUnknown},
		{apierrors.NewUnauthorized("Unauthorized"), region.CauseUnauthorized},
		{apierrors.NewForbidden(gr, "x", errors.New(`User "u" cannot create resource "serviceclusters"`)), region.CauseForbidden},
		{apierrors.NewForbidden(gr, "x", errors.New("exceeded quota: q")), region.CauseDenied},
		{apierrors.NewForbidden(gr, "x", errors.New("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no")), region.CauseDenied},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Message: `admission webhook "w" denied the request: no`}}, region.CauseDenied},
		{apierrors.NewTooManyRequests("wait", 1), region.CauseThrottled},
		{apierrors.NewGenericServerResponse(404, "get", gr, "x", "404 page not found", 0, true), region.CauseNotServed},
		{&meta.NoResourceMatchError{PartialResource: gr.WithVersion("v1")}, region.CauseNotServed},
		{apierrors.NewTimeoutError("request did not complete within requested timeout", 0), region.CauseServerTimeout},
		{calling("context deadline exceeded"), region.CauseWebhookTimeout},
		{calling("net/http: request canceled (Client.Timeout exceeded while awaiting headers)"), region.CauseWebhookTimeout},
		{calling("dial tcp 127.0.0.1:1: connect: connection refused"), region.CauseWebhook},
		{apierrors.NewInternalError(errors.New("etcdserver: no leader")), region.CauseServer},
		{apierrors.NewServiceUnavailable("starting"), region.CauseServer},
		{region.ErrOtherCluster, region.CauseOtherCluster},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, region.CauseTLS},
		{errors.New("http2: client connection lost"), region.CauseLost},
		{errors.New("http2: client conn could not be established"), region.CauseLost}, // the server closed it during the handshake
	} {
		require.Equal(t, tc.want, region.CauseOf(tc.err), "%v", tc.err)
		require.Equal(t, tc.want, region.CauseOf(&region.Error{Peer: "eu", Err: tc.err}), "%v", tc.err)
		require.Equal(t, tc.want == region.CauseUnknown, tc.want.Remedy() == "")
	}
	require.NoError(t, region.Diagnose(nil))
	require.EqualError(t, region.Diagnose(&region.Error{Peer: "eu", Op: "GET", Err: calling("context deadline exceeded")}),
		`admission webhook timed out: Internal error occurred: failed calling webhook "check.example.com": failed to call webhook: `+
			`Post "https://127.0.0.1:1/": context deadline exceeded: repair that webhook, or remove its configuration`)
}

// A caller's deadline that passed before the request was sent does not mean that the peer is unavailable.
func TestCauseOfARequestThatNeverLeft(t *testing.T) {
	t.Parallel()
	conn := connTo(t, &rest.Config{Host: plain(t, func(http.ResponseWriter, *http.Request) {})})
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	err := get(ctx, conn)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, region.CauseUnknown, region.CauseOf(err))
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

func unresolved(_ context.Context, network, addr string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(addr)
	return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
}

// away dials a host that drops all packets: the dial ends with its context.
func away(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := net.Dialer{ControlContext: func(ctx context.Context, _, _ string, _ syscall.RawConn) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	return dialer.DialContext(ctx, network, addr)
}

// silent returns the address of a listener that accepts connections, but neither reads nor writes.
func silent(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String() // the kernel accepts connections
}

func plain(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// secured serves TLS with its own certificate for the given host, which expires at the given time. It returns its URL
// and the certificate.
func secured(t *testing.T, until time.Time, host string) (url string, ca []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, IPAddresses: []net.IP{net.ParseIP(host)},
		NotBefore: until.Add(-24 * time.Hour), NotAfter: until, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
