// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/internal/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newAuthenticator makes and starts an Authenticator.
func newAuthenticator(t *testing.T, c *config.Authentication) *Authenticator {
	t.Helper()
	a, err := New(t.Context(), c, nil)
	require.NoError(t, err)
	logtest.Run(t, a.Start)
	return a
}

// request returns a request with a bearer token, unless it is empty.
func request(t *testing.T, token string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://gateway/regions/*/api/v1/pods", http.NoBody)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

// file writes a file and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// serve serves handler over TLS, and returns the server and its authority in PEM.
func serve(t *testing.T, handler http.Handler) (*httptest.Server, string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(&bytes.Buffer{}, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

// authority signs certificates of clients.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{certificate, key}
}

func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// present returns the state of a connection whose client has a certificate of the authority.
func (a *authority) present(t *testing.T, name string, groups []string, usage x509.ExtKeyUsage, ends time.Time) *tls.ConnectionState {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name, Organization: groups},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: ends, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate}}
}
