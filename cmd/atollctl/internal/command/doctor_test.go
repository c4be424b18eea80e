// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// expires is a command of scripts: see TestScripts.
func expires(ts *testscript.TestScript, _ bool, args []string) {
	s := serverOf(ts, args[0])
	after, err := time.ParseDuration(args[2])
	ts.Check(err)
	kubeconfig, err := clientcmd.Load(s.kubeconfig)
	ts.Check(err)
	for _, user := range kubeconfig.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, ""
		if args[1] == "token" {
			user.Token = tokenUntil(time.Now().Add(after))
			s.secrets = append(s.secrets, []byte(user.Token))
			continue
		}
		user.ClientCertificateData, user.ClientKeyData, err = certificateUntil(time.Now().Add(after))
		ts.Check(err)
	}
	data, err := clientcmd.Write(*kubeconfig)
	ts.Check(err)
	ts.Check(writeFile(ts.MkAbs(args[0]+".kubeconfig"), data))
}

// tokenUntil returns a JWT with the claim exp and an invalid signature.
func tokenUntil(end time.Time) string {
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return encode(`{"alg":"RS256"}`) + "." + encode(fmt.Sprintf(`{"sub":"alice","exp":%d}`, end.Unix())) + "." + encode("signature")
}

// certificateUntil returns a certificate that signs itself, and its key.
func certificateUntil(end time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "alice"}, NotBefore: end.Add(-time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), nil
}

// checked is a user with peers in memory, whose clock is ahead by a duration.
type checked struct {
	t       *testing.T
	servers map[string]*server
	flags   []string
	ahead   time.Duration
}

func newChecked(t *testing.T, names ...string) *checked {
	t.Helper()
	c := &checked{t: t, servers: map[string]*server{}}
	dir := t.TempDir()
	for _, name := range names {
		srv := newServer(func(f func()) { t.Cleanup(f) }, func(err error) { require.NoError(t, err) }, name, true)
		require.NoError(t, writeFile(filepath.Join(dir, name), srv.kubeconfig))
		c.servers[name], c.flags = srv, append(c.flags, "--kubeconfig", name+"="+filepath.Join(dir, name))
	}
	return c
}

// run requires the exit code, and returns the output.
func (c *checked) run(code int, args ...string) string {
	c.t.Helper()
	var out, errOut bytes.Buffer
	s := &session{out: &out, errOut: &errOut, getenv: func(string) string { return "" }, now: func() time.Time { return time.Now().Add(c.ahead) }}
	got := s.execute(c.t.Context(), slices.Concat([]string{"atollctl"}, args, c.flags))
	text := out.String() + errOut.String()
	require.Equal(c.t, code, got, text)
	return text
}

// A clock that differs is a warning: nothing in the protocol depends on it.
func TestDoctorClock(t *testing.T) {
	t.Parallel()
	c := newChecked(t, "eu")
	c.run(exitDone, "peer", "init")
	require.Regexp(t, `Clock +OK `, c.run(exitDone, "doctor"))
	c.ahead = time.Minute
	require.Regexp(t, `Clock +Warning +the API server's clock is (5\ds|1m\ds) behind the clock here`, c.run(exitDone, "doctor"))
	c.ahead = -time.Minute
	require.Regexp(t, `Clock +Warning +the API server's clock is (5\ds|1m\ds) ahead of the clock here`, c.run(exitDone, "doctor"))
	c.ahead = 400 * 24 * time.Hour // all certificates have expired by this clock
	text := c.run(exitInput, "doctor")
	require.Regexp(t, `Expiry +Failed +client certificate: expired at`, text)
	require.Regexp(t, `Expiry +Failed +certificate of the API server: expired at`, text)
	require.Contains(t, text, "error: checks failed: Expiry of eu\n")
}

// A peer whose PeerSet is older than another member has noted was restored from a backup.
func TestDoctorRestored(t *testing.T) {
	t.Parallel()
	c := newChecked(t, "eu", "us")
	c.run(exitDone, "peer", "init")
	const path = "apis/fanout.atoll.dev/v1alpha1/peersets/default"
	change := func(name, body string) {
		c.servers[name].grant("patch", schema.GroupResource{Group: "fanout.atoll.dev", Resource: "peersets"})
		text, code := c.servers[name].send(http.MethodPatch, path, body)
		require.Equal(t, http.StatusOK, code, string(text))
	}
	text, _ := c.servers["us"].send(http.MethodGet, path, "")
	var set fanoutv1alpha1.PeerSet
	require.NoError(t, json.Unmarshal(text, &set))
	saved := c.servers["us"].Save()
	change("us", `{"spec": {"epoch": 5}}`)
	change("eu", fmt.Sprintf(`{"spec": {"epoch": 5, "notes": [{"peer": "us", "uid": %q, "epoch": 5}]}}`, set.Spec.Self.UID))
	c.run(exitDone, "doctor")
	require.NoError(t, c.servers["us"].Load(saved))
	require.Regexp(t, `us +Identity +Failed +Restored: .* atollctl peer comeback us --kubeconfig eu=.* --kubeconfig us=`, c.run(exitInput, "doctor"))
}
