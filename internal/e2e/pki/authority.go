// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority signs certificates that are valid for a day. It is safe for concurrent use.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// New makes an authority with a key of its own.
func New(t testing.TB, name string) *Authority {
	t.Helper()
	template := newTemplate(pkix.Name{CommonName: name})
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &Authority{certificate, key, encode("CERTIFICATE", der)}
}

// PEM returns the certificate of the authority.
func (a *Authority) PEM() []byte { return bytes.Clone(a.pem) }

// Client returns the certificate and the key of a client with the given name and groups, in PEM.
func (a *Authority) Client(t testing.TB, name string, groups ...string) (certificate, key []byte) {
	t.Helper()
	template := newTemplate(pkix.Name{CommonName: name, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(t, template)
}

// Server returns the certificate and the key of a server at 127.0.0.1, in PEM.
func (a *Authority) Server(t testing.TB) (certificate, key []byte) {
	t.Helper()
	template := newTemplate(pkix.Name{CommonName: "server"})
	template.ExtKeyUsage, template.IPAddresses = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []net.IP{net.IPv4(127, 0, 0, 1)}
	return a.sign(t, template)
}

func (a *Authority) sign(t testing.TB, template *x509.Certificate) (certificate, key []byte) {
	t.Helper()
	secret := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, secret.Public(), a.key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(secret)
	require.NoError(t, err)
	return encode("CERTIFICATE", der), encode("EC PRIVATE KEY", keyDER)
}

func newTemplate(subject pkix.Name) *x509.Certificate {
	serial := new(big.Int).SetBytes([]byte(rand.Text()))
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
