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
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGateway sends requests with the addresses and tokens in the commands that the program prints.
func TestGateway(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, in, io.Discard)
		_ = in.CloseWithError(err) // ends the reading below
		ended <- err
	}()
	line := regexp.MustCompile(`'--server=(\S+)' --certificate-authority=(\S+) --token=(\S+) `)
	lines := bufio.NewScanner(out)
	for range 3 {
		require.True(t, lines.Scan(), "%v", lines.Err())
		printed := line.FindStringSubmatch(lines.Text())
		require.NotNil(t, printed, lines.Text())
		authority, err := os.ReadFile(printed[2])
		require.NoError(t, err)
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM(authority))
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
		for token, want := range map[string]int{printed[3]: http.StatusOK, "mallory": http.StatusUnauthorized} {
			require.Equal(t, want, code(t, transport, printed[1]+"/api/v1/namespaces", token))
		}
		transport.CloseIdleConnections()
	}
	cancel()
	require.NoError(t, <-ended)
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left, "the folder is removed")
}

// code returns the code of the answer, once the regions are known.
func code(t *testing.T, transport http.RoundTripper, url, token string) int {
	t.Helper()
	got := 0
	require.Eventually(t, func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := (&http.Client{Transport: transport}).Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		got = resp.StatusCode
		return got != http.StatusNotFound && got != http.StatusServiceUnavailable
	}, time.Minute, time.Millisecond)
	return got
}

// Each flag of earlier releases has a successor in the configuration.
func TestRefuse(t *testing.T) {
	require.NoError(t, refuse(nil))
	require.ErrorContains(t, refuse([]string{"-peers", "peers.yaml", "--users=x"}),
		"-peers is now the field source.file, -users is now the field authentication.tokenFile.file")
	require.Error(t, refuse([]string{"more"}))
	for flag, field := range successors {
		at := reflect.TypeFor[config.Configuration]()
		for name := range strings.SplitSeq(field, ".") {
			if at.Kind() == reflect.Pointer {
				at = at.Elem()
			}
			next, ok := at.FieldByNameFunc(func(n string) bool { return strings.EqualFold(n, name) })
			require.True(t, ok, "%s: there is no field %s", flag, field)
			at = next.Type
		}
	}
}
