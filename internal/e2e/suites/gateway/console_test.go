// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/e2e/process"
)

// TestConsole opens a page in a browser, which uses JavaScript's Kubernetes client at the merged address. The page of
// another origin gets no answer.
func TestConsole(t *testing.T) {
	chromium := browser(t)
	page := bundle(t)
	w := newWorld(t)
	site := &site{page: page, reports: make(chan string, 1)}
	server := httptest.NewServer(site)
	defer server.Close()
	w.origins = []any{server.URL}
	r := w.start(t.TempDir())
	for _, name := range []string{"eu-west", "us-east"} {
		planetest.Apply(t, w.peers[name], "{apiVersion: v1, kind: ConfigMap, metadata: {name: shown, namespace: default}, data: {by: nobody}}")
	}
	setup, err := json.Marshal(map[string]string{"server": r.address + all, "token": w.token(audience)})
	require.NoError(t, err)
	site.setup = setup

	require.JSONEq(t, `{"shown": ["shown@eu-west-1.loodse", "shown@us-east-1.loodse"], "events": [
		"MODIFIED shown@us-east-1.loodse console", "ADDED made@eu-west-1.loodse console", "DELETED made@eu-west-1.loodse console"]}`,
		w.visit(chromium, site, server.URL))
	require.Equal(t, map[string]string{"eu-west": "nobody", "us-east": "console"}, w.values("shown", "by"))

	// The same page at another origin: the browser withholds the answers.
	other := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	require.JSONEq(t, `{"error": "TypeError: Failed to fetch"}`, w.visit(chromium, site, other))
}

// values returns a value of the ConfigMap in each peer.
func (w *world) values(name, key string) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for peer, p := range w.peers {
		obj, err := planetest.Dynamic(w.t, p.Config()).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).
			Namespace("default").Get(w.t.Context(), name, metav1.GetOptions{})
		require.NoError(w.t, err)
		all[peer], _, _ = unstructured.NestedString(obj.Object, "data", key)
	}
	return all
}

// browser returns the path of Chromium.
func browser(t *testing.T) string {
	t.Helper()
	planetest.SkipShort(t)
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no Chromium on this machine: on Debian, apt-get install chromium")
	return ""
}

// unreachable matches npm's errors of a registry that it cannot reach.
var unreachable = regexp.MustCompile("ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|ECONNRESET")

// bundle builds the page with npm, once per version of its sources.
func bundle(t *testing.T) []byte {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm on this machine, which installs JavaScript's Kubernetes client")
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("console")))
	for _, args := range [][]string{{"ci", "--ignore-scripts", "--no-audit", "--no-fund"}, {"run", "build"}} {
		cmd := exec.CommandContext(t.Context(), "npm", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if unreachable.Match(out) {
			t.Skipf("the npm registry, which has JavaScript's Kubernetes client, is not reachable from here: %s", out)
		}
		require.NoError(t, err, "npm %s: %s", args[0], out)
	}
	page, err := os.ReadFile(filepath.Join(dir, "page.bundle.js"))
	require.NoError(t, err)
	return page
}

// site serves the page and its setup, and receives its report.
type site struct {
	page, setup []byte
	reports     chan string
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/":
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!doctype html><meta charset="utf-8"><script src="/page.js"></script>`))
	case "/page.js":
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write(s.page)
	case "/setup":
		_, _ = w.Write(s.setup)
	case "/report":
		report, _ := io.ReadAll(r.Body)
		s.reports <- string(report)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// visit opens the site in a browser that trusts the gateway's certificate, and returns the report of the page.
func (w *world) visit(chromium string, s *site, url string) string {
	w.t.Helper()
	text, err := os.ReadFile(w.path(mounted + "/tls/tls.crt"))
	require.NoError(w.t, err)
	block, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(w.t, err)
	pin := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)

	ctx, cancel := context.WithTimeout(w.t.Context(), soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+w.t.TempDir(),
		"--remote-debugging-port=0", "--ignore-certificate-errors-spki-list="+base64.StdEncoding.EncodeToString(pin[:]), url)
	log := &process.Log{}
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(w.t, cmd.Start())
	defer func() {
		cancel()
		_ = cmd.Wait() // it is killed
	}()
	select {
	case report := <-s.reports:
		return report
	case <-ctx.Done():
		require.Fail(w.t, "the page has not reported", "%s", log)
		return ""
	}
}
