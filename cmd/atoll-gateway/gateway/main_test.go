// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/cmd/atoll-gateway/gateway"
	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region/regiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a folder with the files of gateways, and two regions.
type site struct {
	t       *testing.T
	dir     string
	servers map[string]*regiontest.Server
	ca      []byte // of the serving certificate
}

func newSite(t *testing.T, opts regiontest.Options) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), servers: map[string]*regiontest.Server{}}
	list := "peers:\n"
	for _, name := range []string{"eu-west", "us-east"} {
		opts.Name = name
		server := regiontest.NewServer(opts)
		t.Cleanup(server.Close)
		s.servers[name] = server
		kubeconfig, err := server.Listen(t.Context())
		require.NoError(t, err)
		s.write(name+".kubeconfig", kubeconfig)
		list += fmt.Sprintf("- {name: %[1]s, kubeconfig: %[1]s.kubeconfig, regions: [%[1]s-1.loodse]}\n", name)
	}
	s.write("peers.yaml", []byte(list))
	s.write("tokens.csv", []byte("t-alice,alice,1,\"dev\"\nt-ops,olga,2,\"ops\"\n"))
	key := make([]byte, 32)
	_, err := rand.Read(key)
	require.NoError(t, err)
	s.write("keys", []byte(base64.StdEncoding.EncodeToString(key)+"\n"))
	s.ca = s.certify("gateway")
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name string, data []byte) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(s.path(name), data, 0o600))
}

// certify writes a new serving certificate, and returns it as its own authority.
func (s *site) certify(name string) []byte {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(s.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(s.t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(s.t, err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	s.write("tls.crt", certificate)
	s.write("tls.key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
	return certificate
}

// config returns a configuration with the files of the site, changed by edit.
func (s *site) config(edit func(*config.Configuration)) *config.Configuration {
	s.t.Helper()
	c, err := config.Parse([]byte(fmt.Sprintf(`
apiVersion: gateway.atoll.dev/v1alpha1
kind: GatewayConfiguration
serving: {address: "127.0.0.1:0", certificateFile: %[1]s/tls.crt, keyFile: %[1]s/tls.key}
health: {address: "127.0.0.1:0"}
source: {file: %[1]s/peers.yaml, cacheWait: 1s}
authentication: {tokenFile: {file: %[1]s/tokens.csv}}
tokenKeysFile: %[1]s/keys
operators: {group: ops}
audit: {file: "-"}
drain: {delay: 10ms, timeout: 30s}
`, s.dir)))
	require.NoError(s.t, err)
	if edit != nil {
		edit(c)
	}
	return c
}

// program is a gateway that runs.
type program struct {
	*site
	address, health string
	lines           *logtest.Lines
	audited         *output
	end             func() // ends it and waits
}

func (s *site) start(c *config.Configuration) *program {
	s.t.Helper()
	p := &program{site: s, lines: logtest.New(), audited: &output{}}
	ctx, cancel := context.WithCancel(s.t.Context())
	g, err := gateway.New(ctx, c, gateway.Options{Stdout: p.audited, Logger: p.lines.Logger()})
	require.NoError(s.t, err)
	ended := make(chan error, 1)
	go func() { ended <- g.Start(ctx) }()
	p.end = sync.OnceFunc(func() {
		cancel()
		require.NoError(s.t, <-ended)
	})
	s.t.Cleanup(p.end)
	clients, health, err := g.Addresses(s.t.Context())
	require.NoError(s.t, err)
	p.address, p.health = "https://"+clients.String(), "http://"+health.String()
	return p
}

// ready waits until the gateway is ready, and returns the answer of /readyz.
func (p *program) ready() string {
	p.t.Helper()
	var text string
	require.Eventually(p.t, func() bool {
		code, body := p.plain("/readyz")
		text = body
		return code == http.StatusOK
	}, time.Minute, 5*time.Millisecond)
	return text
}

// plain gets a path of the health server.
func (p *program) plain(path string) (int, string) {
	p.t.Helper()
	return read(p.t, http.DefaultClient, p.health+path, "")
}

// get gets a path of the gateway with a token.
func (p *program) get(path, token string) (int, string) {
	p.t.Helper()
	config := p.client("", token)
	client, err := rest.HTTPClientFor(config)
	require.NoError(p.t, err)
	defer client.CloseIdleConnections()
	return read(p.t, client, p.address+path, token)
}

func read(t *testing.T, client *http.Client, url, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	defer http.DefaultClient.CloseIdleConnections()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// client returns the configuration of a client for a path of the gateway.
func (p *program) client(path, token string) *rest.Config {
	return &rest.Config{Host: p.address + path, BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: p.ca}}
}

// output collects audit events.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(data)
}

// events returns the audit events so far.
func (o *output) events(t *testing.T) []auditv1.Event {
	t.Helper()
	o.mu.Lock()
	text := o.text.String()
	o.mu.Unlock()
	var events []auditv1.Event
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		var e auditv1.Event
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		events = append(events, e)
	}
	return events
}
