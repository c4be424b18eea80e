// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atoll-dev/atoll/internal/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGateway sends requests with the addresses and tokens in the commands that the program prints.
func TestGateway(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	logs := logtest.New()
	go func() { ended <- run(ctx, []string{"-listen=127.0.0.1:0", "-operators=ops"}, in, logs) }()
	line := regexp.MustCompile(`--server=https://(\S+)/regions/([a-z0-9.-]+) --certificate-authority=(\S+) --token=(\S+) `)
	var printed [][]string
	lines := bufio.NewScanner(out)
	for len(printed) < 4 && lines.Scan() {
		if found := line.FindStringSubmatch(lines.Text()); found != nil {
			printed = append(printed, found)
		}
	}
	require.Len(t, printed, 4)

	authority, err := os.ReadFile(printed[0][3])
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(authority))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	get := func(path, token string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+printed[0][1]+path, http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := (&http.Client{Transport: transport}).Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	for _, p := range printed {
		code, body := get("/regions/"+p[2]+"/api/v1/namespaces", p[4])
		require.Equal(t, http.StatusOK, code)
		require.Contains(t, body, "NamespaceList")
		logs.Await(t, "msg=request", "/regions/"+p[2], "code=200")
	}
	for path, want := range map[string]int{"/peers/eu-west/version": http.StatusOK, "/peers/nobody/version": http.StatusNotFound} {
		code, _ := get(path, "bob")
		require.Equal(t, want, code)
		code, _ = get(path, "alice")
		require.Equal(t, http.StatusNotFound, code)
	}
	code, _ := get("/regions/eu-west-1.loodse/version", "mallory")
	require.Equal(t, http.StatusUnauthorized, code)
	transport.CloseIdleConnections()
	cancel()
	require.NoError(t, <-ended)
}

func TestUsers(t *testing.T) {
	known, err := parseUsers(strings.NewReader("t1,alice,1,\"dev,ops\"\nt2,bob,2\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"dev", "ops"}, known.byToken["t1"].Groups)
	require.Equal(t, "bob", known.byToken["t2"].Name)
	for _, wrong := range []string{"t1,alice\n", ",alice,1\n", "t1,,1\n", "t1,alice,1\nt1,bob,2\n", "\"\n"} {
		_, err := parseUsers(strings.NewReader(wrong))
		require.ErrorContains(t, err, "users: ", wrong)
	}
	for _, o := range []options{{peers: "x"}, {users: t.TempDir() + "/none"}} {
		_, err := usersOf(o)
		require.Error(t, err)
	}
	_, err = certificateOf(options{certificate: "x"})
	require.ErrorContains(t, err, "together")
}
