// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"github.com/atoll-dev/atoll/internal/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folder returns a folder with the files of a configuration.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	for name, data := range map[string][]byte{
		"tls.crt":    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"tls.key":    pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
		"peers.yaml": []byte("peers: []\n"),
		"tokens.csv": []byte("t-alice,alice,1\n"),
		"gateway.yaml": []byte(strings.ReplaceAll(`
apiVersion: gateway.atoll.dev/v1alpha1
kind: GatewayConfiguration
serving: {address: "127.0.0.1:0", certificateFile: DIR/tls.crt, keyFile: DIR/tls.key}
health: {address: "127.0.0.1:0"}
source: {file: DIR/peers.yaml}
authentication: {tokenFile: {file: DIR/tokens.csv}}
drain: {delay: 0s}
`, "DIR", dir)),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return dir
}

func TestRun(t *testing.T) {
	defer klog.SetLogger(logr.Discard())
	dir := folder(t)
	config := filepath.Join(dir, "gateway.yaml")
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"--config", config, "--check"}, &stdout, &stderr), stderr.String())
	require.Empty(t, stderr.String())

	ctx, cancel := context.WithCancel(t.Context())
	lines := logtest.New()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"--config", config}, &stdout, lines) }()
	lines.Await(t, `"msg":"The gateway serves"`, `"address":"127.0.0.1:`)
	cancel()
	require.Zero(t, <-ended)
	require.Empty(t, stdout.String())
}

// A wrong command line, configuration or file ends the program with 2 and one line, before anything is started.
func TestRefused(t *testing.T) {
	defer klog.SetLogger(logr.Discard())
	dir := folder(t)
	config := filepath.Join(dir, "gateway.yaml")
	good, err := os.ReadFile(config)
	require.NoError(t, err)
	for _, tt := range []struct {
		args    []string
		replace [2]string
		want    string
	}{
		{args: nil, want: "--config is missing"},
		{args: []string{"--config", config, "more"}, want: "there are other arguments"},
		{args: []string{"--config", config + "x"}, want: "no such file"},
		{args: []string{"--config", config}, replace: [2]string{"delay: 0s", "delay: 1h"}, want: config + ": drain.delay: is 1h0m0s; accepted: "},
		{args: []string{"--config", config, "--check"}, replace: [2]string{"tokens.csv", "none"}, want: config + ": authentication.tokenFile.file: "},
		{args: []string{"--config", config}, replace: [2]string{"tls.crt", "none"}, want: config + ": serving.certificateFile: "},
	} {
		require.NoError(t, os.WriteFile(config, bytes.Replace(good, []byte(tt.replace[0]), []byte(tt.replace[1]), 1), 0o600))
		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, run(t.Context(), tt.args, &stdout, &stderr), "%v", tt.args)
		require.Contains(t, stderr.String(), tt.want)
		require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
	}
	var stderr bytes.Buffer
	require.Equal(t, 2, run(t.Context(), []string{"--no-such-flag"}, &stderr, &stderr))
	require.Zero(t, run(t.Context(), []string{"--help"}, &stderr, &stderr))
}

// A file of peers that cannot be read is a failure, not a wrong command line: it may be there the next time.
func TestFailed(t *testing.T) {
	defer klog.SetLogger(logr.Discard())
	dir := folder(t)
	require.NoError(t, os.Remove(filepath.Join(dir, "peers.yaml")))
	lines := logtest.New()
	require.Equal(t, 1, run(t.Context(), []string{"--config", filepath.Join(dir, "gateway.yaml")}, lines, lines))
	lines.Await(t, "atoll-gateway: ring: ", "peers.yaml")
}
