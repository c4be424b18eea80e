// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region/v1alpha1"
)

var loopback = Addresses{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

// clusterOf serves HTTPS on the loopback, and returns a kubeconfig for it.
func clusterOf(t *testing.T, serve http.HandlerFunc) (server *httptest.Server, kubeconfig string) {
	t.Helper()
	server = httptest.NewTLSServer(serve)
	t.Cleanup(server.Close)
	return server, kubeconfigOf(server, server.URL, "token: the-token")
}

func kubeconfigOf(server *httptest.Server, address, user string) string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "%s", certificate-authority-data: %s}}], users: [{name: u, user: {%s}}]}`, address, base64.StdEncoding.EncodeToString(ca), user)
}

func TestTheVersionIsReadWithTheTokenOfTheKubeconfig(t *testing.T) {
	t.Parallel()
	_, kubeconfig := clusterOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" || r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer the-token" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_, _ = w.Write([]byte(`{"major":"1","minor":"36+","gitVersion":"v1.36.0-eks-1","platform":"linux/amd64","goVersion":"go1.26"}`))
	})
	v, err := NewProbe(loopback)(t.Context(), []byte(kubeconfig))
	require.NoError(t, err)
	require.Equal(t, v1alpha1.KubernetesVersion{Major: "1", Minor: "36+", GitVersion: "v1.36.0-eks-1", Platform: "linux/amd64"}, v)
}

func TestTheDefaultProbeRefusesTheLoopback(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server, kubeconfig := clusterOf(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	for _, address := range []string{server.URL, "https://localhost:" + port, "https://[::ffff:127.0.0.1]:" + port} {
		_, err = NewProbe(Addresses{})(t.Context(), []byte(kubeconfigOf(server, address, "token: the-token")))
		require.ErrorIs(t, err, ErrKubeconfig)
		require.ErrorIs(t, err, ErrAddress)
		require.Contains(t, explain(err), "loopback")
		require.NotContains(t, explain(err), port)
	}
	_, err = NewProbe(loopback)(t.Context(), []byte(kubeconfig))
	require.Error(t, err)
	require.EqualValues(t, 1, asked.Load())
}

// TestTheEnvironmentsProxyIsNotUsed names a proxy that would answer.
func TestTheEnvironmentsProxyIsNotUsed(t *testing.T) {
	var proxied atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { proxied.Add(1) }))
	defer proxy.Close()
	t.Setenv("HTTPS_PROXY", proxy.URL)
	server, _ := clusterOf(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	_, err := NewProbe(Addresses{})(t.Context(), []byte(kubeconfigOf(server, "https://192.0.2.1.invalid", "token: t")))
	require.Error(t, err)
	require.Zero(t, proxied.Load())
}

func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var followed atomic.Int32
	target, _ := clusterOf(t, func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	_, kubeconfig := clusterOf(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target.URL, http.StatusFound) })
	_, err := NewProbe(loopback)(t.Context(), []byte(kubeconfig))
	require.ErrorContains(t, err, "302")
	require.Equal(t, "the server answers 302 Found", explain(err))
	require.Zero(t, followed.Load())
}

func TestAnswersThatAreNoVersion(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"text":              "hello",
		"terminal codes":    `{"gitVersion":"v1.36\u001b[31m"}`,
		"white space":       `{"gitVersion":"v1.36 or so"}`,
		"long":              `{"gitVersion":"v` + strings.Repeat("1", 64) + `"}`,
		"larger than bound": `{"gitVersion":"v1"}` + strings.Repeat(" ", answerLimit),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, kubeconfig := clusterOf(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
			_, err := NewProbe(loopback)(t.Context(), []byte(kubeconfig))
			require.ErrorIs(t, err, errNoVersion)
		})
	}
}

func TestALargeHeaderIsRefused(t *testing.T) {
	t.Parallel()
	_, kubeconfig := clusterOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 128<<10))
		_, _ = w.Write([]byte("{}"))
	})
	_, err := NewProbe(loopback)(t.Context(), []byte(kubeconfig))
	require.ErrorContains(t, err, "header")
}

func TestAClusterThatForbidsItsVersionIsReachable(t *testing.T) {
	t.Parallel()
	_, kubeconfig := clusterOf(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	v, err := NewProbe(loopback)(t.Context(), []byte(kubeconfig))
	require.NoError(t, err)
	require.Zero(t, v)
}

func TestExplanations(t *testing.T) {
	t.Parallel()
	server, kubeconfig := clusterOf(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	frozen, _ := clusterOf(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	closed, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refusing := "https://" + closed.Addr().String()
	require.NoError(t, closed.Close())

	for name, c := range map[string]struct{ kubeconfig, explanation string }{
		"rejected token":      {kubeconfig, "credentials rejected"},
		"frozen":              {kubeconfigOf(frozen, frozen.URL, "token: t"), "no answer in time"},
		"nothing listens":     {kubeconfigOf(server, refusing, "token: t"), "connection refused"},
		"other host":          {strings.Replace(kubeconfigOf(server, server.URL, "token: t"), "server:", "tls-server-name: other.invalid, server:", 1), "certificate is of another host"},
		"unknown authority":   {regexp.MustCompile(", certificate-authority-data: [^}]*").ReplaceAllString(kubeconfigOf(server, server.URL, "token: t"), ""), "unknown authority"},
		"name":                {kubeconfigOf(server, "https://does-not-exist.invalid", "token: t"), "DNS lookup failed"},
		"a program":           {kubeconfigOf(server, server.URL, "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh}"), "users[0].user.exec"},
		"impersonation":       {kubeconfigOf(server, server.URL, "token: t, as: admin"), "users[0].user.as"},
		"a file":              {kubeconfigOf(server, server.URL, "tokenFile: /var/run/secrets/token"), "users[0].user.tokenFile"},
		"not a kubeconfig":    {"hello", "the kubeconfig is not accepted"},
		"a proxy":             {strings.Replace(kubeconfigOf(server, server.URL, "token: t"), "server:", "proxy-url: 'http://10.0.0.1', server:", 1), "proxy-url"},
		"plain text":          {kubeconfigOf(server, strings.Replace(server.URL, "https", "http", 1), "token: t"), "clusters[0].cluster.server"},
		"verification is off": {strings.Replace(kubeconfigOf(server, server.URL, "token: t"), "server:", "insecure-skip-tls-verify: true, server:", 1), "insecure-skip-tls-verify"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := NewProbe(loopback)(ctx, []byte(c.kubeconfig))
			require.Error(t, err)
			require.Contains(t, explain(err), c.explanation)
			require.NotContains(t, explain(err), "127.0.0.1")
		})
	}
}
