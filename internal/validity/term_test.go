// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package validity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func certificate(t *testing.T, from, to time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: to}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func token(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".e30"
}

func TestOf(t *testing.T) {
	from := time.Now().Add(-time.Hour).Truncate(time.Second).UTC()
	to := from.Add(2 * time.Hour)
	pair, jwt := certificate(t, from, to), token(fmt.Sprintf(`{"iat":%d,"exp":%d}`, from.Unix(), to.Unix()))
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		return filepath.Join(dir, name)
	}
	tls := func(c rest.TLSClientConfig) rest.Config { return rest.Config{TLSClientConfig: c} }
	of := func(c rest.Config) []Term {
		terms := Of(&c)
		for i := range terms {
			terms[i].From, terms[i].To = terms[i].From.UTC(), terms[i].To.UTC()
		}
		return terms
	}
	require.Equal(t, []Term{{Certificate, from, to}}, of(tls(rest.TLSClientConfig{CertData: pair})))
	require.Equal(t, []Term{{Certificate, from, to}}, of(tls(rest.TLSClientConfig{CertFile: file("c", pair)})))
	require.Equal(t, []Term{{Kind: Certificate}}, of(tls(rest.TLSClientConfig{CertData: []byte("none")})))
	require.Empty(t, of(tls(rest.TLSClientConfig{CertFile: filepath.Join(dir, "none")})))
	require.Equal(t, []Term{{Token, from, to}}, of(rest.Config{BearerToken: jwt}))
	require.Equal(t, []Term{{Token, from, to}}, of(rest.Config{BearerToken: "old", BearerTokenFile: file("t", []byte(jwt+"\n"))}))
	require.Equal(t, []Term{{Token, time.Time{}, to}}, of(rest.Config{BearerToken: token(fmt.Sprintf(`{"exp":%d}`, to.Unix()))}))
	require.Equal(t, []Term{{Kind: Plugin}}, of(rest.Config{ExecProvider: &clientcmdapi.ExecConfig{}}))
	for _, opaque := range []string{"opaque", "a.b.c", "..", token("{}"), token("[]"), token(`{"exp":-1}`), token(`{"exp":1e300}`)} {
		require.Equal(t, []Term{{Kind: Token}}, of(rest.Config{BearerToken: opaque}), opaque)
	}
}

func TestFirst(t *testing.T) {
	now := time.Now()
	soon, late := Term{Token, now, now.Add(time.Hour)}, Term{Certificate, now, now.Add(2 * time.Hour)}
	require.Equal(t, soon, First([]Term{late, {Kind: Plugin}, soon}))
	require.Equal(t, late, First([]Term{{Kind: Token}, late}))
	require.Zero(t, First([]Term{{Kind: Plugin}}))
	require.Zero(t, First(nil))
}
